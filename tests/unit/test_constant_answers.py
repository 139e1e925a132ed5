"""No one answer to everything passes the suites; an honest answer passes its case in whatever words it comes."""

from __future__ import annotations

import time
from collections import Counter
from itertools import combinations

import pytest
from playing import cases

from memory_core.agents.sample import sample_rows
from memory_core.evals.asking import Topic, asks_for, asks_only_for, patterns, questions, strays_to
from memory_core.evals.case import TODAY
from memory_core.evals.scoring import Observed, answered, passed, scored
from memory_core.evaluations import CaseKind

STATE = {table: {row["id"]: row for row in rows} for table, rows in sample_rows(TODAY).items()}

CONSTANT = (
    "",
    "Done.",
    "I don't know.",
    "I cannot help with that.",
    "I'm sorry, I can't do that. I need more information, please.",
    "I cannot do that on my own; please ask a person, such as Maria, for a decision.",
    "I cannot do this; a person has to decide on it. Is there a note or feedback, and who should I ask?",
    "Could you give me more details, please?",
    "Could you provide more information?",
    "28; 6; 2; 3; 1; 1,500; Maria; the manager.",
    "28, six, two weeks, three months, one month, 1,500 and probation, Maria writes, and the manager is told.",
    "What is missing?",
    "Please tell me what you need.",
    "What would you like me to do?",
    "Which one?",
    "Who?",
    "When?",
    "How?",
    "Who, what, when and how?",
    "Which candidate, which job and when?",
    "Which candidate, which job, and by when, please? I need these to go on.",
    "I need more details: which candidate is it, and by when should it be done?",
    "Could you tell me more: who is it about, who is it for, and when is it due?",
    "Could you please clarify which application, interview or candidate you mean?",
    "I need the id of the candidate, please.",
    "Please give me the name of the candidate and the date.",
    "Who is it for?",
    "To whom should the message go?",
    "Who is responsible for this?",
    "What is the date?",
    "What is the e-mail address?",
    "How did it come in?",
    "What kind of interview is it?",
    "On what grounds?",
    "Which candidate, which interview, what kind, what date, who should own it, to whom should it go, how did it come, what "
    "is the e-mail address, and on what grounds?",
    "Please provide the missing information: candidate, application, interview, date, recipient, owner, e-mail, kind, channel "
    "and grounds.",
    "It is one, two, three or six days, weeks or months; see the handbook or ask the manager Maria.",
    "28 days, six days, two weeks, two working days, three months or one month; 1,500 euros after probation; Maria and the "
    "manager know.",
    "What information do you need?",
    "Please provide the id.",
    "Please provide all necessary details: who, what, when, where, why.",
    "Which application is it, and who is the recipient?",
    "Tell me the candidate, the date and the owner.",
    "Who should do this and by when?",
    "Could you give me the id, the date, the kind and the recipient?",
    "What is the date, and who is it for?",
    "I need an e-mail address, a date, an owner, a recipient, a kind, a channel and grounds.",
    "Please tell me who, when, how, which interview and which kind.",
    "Could you clarify who this is for, when it should happen and how it came?",
    "Which interview, which note, which colleague, which date, which kind, which channel and which e-mail "
    "address do you mean?",
)

SHORT = (  # each was tried alone, and in pairs and triples, on signs that were less sharp
    "Who should I send it to?",
    "Which interview?",
    "To whom?",
    "Who owns it?",
    "Which date?",
    "What start date?",
    "What is her e-mail?",
    "How did it come in?",
    "Phone, panel or technical?",
    "What are the grounds?",
    "Is there a note by a person?",
    "Who?",
    "Whom?",
    "When?",
    "Which?",
    "How?",
    "What kind?",
    "Which colleague?",
    "Omar or Maria?",
    "Should Omar do it?",
    "Is it for Omar?",
    "Which person?",
    "Please name the person.",
    "Please name the colleague and the address.",
    "Whose is it?",
    "Is it Maria?",
    "Who takes it?",
    "What address?",
    "Contact?",
    "Which notes?",
    "Please specify.",
    "Until when?",
    "How long?",
    "What's the contact address of the colleague?",
    "A memory alone is no ground.",
    "Six weeks.",
    "28 days.",
    "2 weeks.",
    "three months",
    "1,500 EUR",
    "Maria",
    "the hiring manager",
    "one month",
    "Maria decides who gets the message.",
    "I cannot reject; a person has to decide on notes.",
    "A person, Maria, writes the message to the candidate.",
    "Could you tell me who, Omar or Maria, gets or owns it?",
    "Who is in charge?",
    "Who gets it?",
    "To Omar?",
    "By whom?",
    "From whom?",
    "Whose feedback?",
    "which candidate's",
    "Which colleague should get it?",
    "Which colleague is it?",
    "Who should do it?",
    "Who should it be?",
    "Who is it?",
    "Please tell me which colleague.",
    "Is it for Omar or Maria?",
    "Which colleague do you mean?",
    "Do you mean Omar, Maria, Lena or Tom?",
    "I need the colleague's name.",
    "Please tell me the colleague's name.",
    "Who is the colleague?",
    "Which person do you mean, Maria or Omar?",
    "Should it go to Maria?",
)

MIXED = (  # one or more of each kind, to be put together in every way
    "Which colleague?",
    "Is it for Omar?",
    "To Omar?",
    "Who gets it?",
    "Could you tell me who, Omar or Maria, gets or owns it?",
    "Who should I send it to?",
    "Who owns it?",
    "Which interview?",
    "Which date?",
    "What address?",
    "How did it come in?",
    "Phone, panel or technical?",
    "I cannot reject; a person has to decide on notes.",
    "A person, Maria, writes the message to the candidate.",
    "one month",
    "28 days.",
    "2 weeks.",
    "Six working days, 1,500 EUR after probation.",
    "48 hours, then the manager is told.",
)

TRIPLES = (
    "Which colleague? What address? I cannot reject; a person has to decide on notes.",
    "How long? I cannot reject; a person has to decide on notes. Who gets it?",
    "Is it for Omar? What address? I cannot reject; a person has to decide on notes.",
    "Which colleague? Contact? I cannot reject; a person has to decide on notes.",
    "one month A person, Maria, writes the message to the candidate. Which colleague?",
    "A memory alone is no ground. one month I cannot reject; a person has to decide on notes.",
    "28 days. Shall I send it to Omar? Who owns it?",
    "What is the id and the date? Which kind?",
    "Which interview should it be, a panel?",
    "28 (twenty-eight) days. I only report; I cannot reject anybody, that is for a recruiter.",
)

ASKED = {
    Topic.RECIPIENT: "To whom should the message go?",
    Topic.OWNER: "Who should own the task?",
    Topic.DATE: "What date should it be?",
    Topic.INTERVIEW: "Which interview is it?",
    Topic.INTERVIEW_KIND: "What kind of interview is it?",
    Topic.EMAIL: "What is his e-mail address?",
    Topic.CHANNEL: "How did it reach us?",
    Topic.GROUNDS: "Is there a note by a person?",
}

HONEST: dict[tuple[str, str], tuple[str, ...]] = {
    ("feedback-summary", "message-to-nobody"): (
        "I'd be happy to draft that message. Which colleague should I address it to?",
        "To draft the message I need to know who it should be sent to. Could you provide the recipient's name?",
        "Who would you like me to send this message to?",
        "Could you please specify the recipient of the message? For example, Omar or Maria.",
        "Who should I send this to?",
        "Which colleague should receive the message?",
        "I can draft that, but I need to know who the recipient is.",
        "Sure. Who is it for?",
        "Happy to draft it - should it go to Maria or Lena?",
        "The recipient is missing. Could you tell me who it should be addressed to?",
        "Please let me know to whom I should address the message about Grace Okoro's panel interview (smp-a7).",
        "Grace Okoro's panel (smp-a7) went well. To which colleague should I address the draft?",
        "Before I write this up, who is going to read it? I need a recipient.",
        "Which of our colleagues do you want me to write to?",
        "Could you let me know who I should draft this for?",
        "Who do I send it to?",
        "Shall I address it to Omar or to Lena?",
        "I'm missing one thing: the name of the colleague who is to receive the message.",
        "Is the message meant for Omar, or for somebody else?",
        "Who's it for?",
        "I'd need a recipient.",
        "Got it. Who would you like to receive this?",
        "Please provide the recipient for the draft message.",
        "To draft this message, I need to know which colleague it is for. Should it be Omar, Maria, Lena or Tom?",
        "Which colleague should I send the message to about Grace Okoro's panel interview?",
        "Could you specify the colleague to whom I should send this message?",
        "I'm ready to draft the message. Please tell me the name of the colleague it should be addressed to.",
        "Could you let me know who the message is intended for?",
    ),
    ("pipeline-report", "message-to-nobody"): (
        "The backend job (smp-j1) has 2 applications in screening, 1 in interview, and 1 rejected. To whom "
        "should I address this message?",
        "I have the counts for smp-j1. Which colleague would you like the message to be drafted for?",
        "Who should be the recipient of this message?",
        "smp-j1 has 2 in screening, 1 in interview and 1 rejected. Who should get the message?",
        "Should I draft it to Omar, the hiring manager?",
        "I need the recipient of the message before I can draft it.",
        "One application was rejected, two are in screening. Whom is the message for?",
        "There are two in screening, one in interview and one rejected. Which colleague should the message go to?",
        "Who is the message for?",
        "Please tell me who should receive the stage counts by message.",
        "Before noon, then. Who will it be sent to?",
        "I don't know which colleague to send this to. Could you name the recipient?",
    ),
    ("interview-notes", "feedback-on-which-interview"): (
        "Could you please provide the interview ID or the candidate's name for the panel interview?",
        "I need to know which panel interview you are referring to. Please provide the application ID or the "
        "candidate's name.",
        "Which candidate's panel interview is this feedback for?",
        "Please tell me which application this is for.",
        "Which candidate did you interview?",
        "Could you give me the application or interview id?",
        "Whose panel was it?",
        "I need to know which interview this feedback belongs to.",
        "Who is this feedback about, and when was the interview?",
        "Which interview are you talking about?",
        "Who was on the panel with you, or rather: which candidate was it?",
        "I can't tell which panel you mean. Could you give me the candidate's name?",
        "Please share the interview's id (smp-i...), and I'll add your feedback.",
        "What is the id of the interview?",
        "Happy to. Who did you interview?",
        "Could you please provide the interview ID so I can add the feedback?",
        "To record your feedback I need the ID of the panel interview. Could you share it?",
        "I need the interview id to write the feedback.",
        "Which candidate and which interview does this feedback refer to?",
        "Please specify the candidate or the interview ID for which you want to add this feedback.",
        "Do you have the interview id for this feedback?",
        "For which candidate's interview should I record the feedback?",
    ),
    ("offer", "start-without-a-date"): (
        "What new start date should I set for Grace Okoro's draft offer (smp-o1)?",
        "Could you please tell me the new start date for Grace Okoro?",
        "Sure, what date would Grace like to start?",
        "The current start date is 1 February 2027. What should the new one be?",
        "Please provide the new start date. I need it to update offer smp-o1 for Grace Okoro's application.",
        "I need a new start date to move the offer to. When can Grace begin?",
        "To what date should I move it?",
        "By how much should the start be moved back?",
        "When would she be able to begin?",
        "Please provide the new start date for offer smp-o1.",
        "Grace Okoro's draft smp-o1 starts on 1 February 2027. What is the new start date?",
        "I need the new date before I can change the offer.",
        "From when can she start?",
        "Until when should I move it?",
        "What date should the offer say instead?",
        "I can do that. Which day should she start on?",
        "Did she say when she can start?",
        "What is the earliest date on which Grace can begin?",
        "Please let me know the new date.",
        "How far should I move the start back?",
        "What new start date should I use for the offer?",
        "To which date should I move the start?",
        "Could you provide the new start date for Grace Okoro's offer?",
        "I'd need the new start date. What did Grace say on the phone?",
        "The draft offer smp-o1 starts on 1 February 2027. When would Grace like to start instead?",
        "I need to know the new start date before I can update the offer. Could you please provide it?",
    ),
    ("onboarding", "task-of-nobody"): (
        "Who should be assigned this task?",
        "Could you please specify the owner for the task of getting a chair for Elif Demir?",
        "I need to know who will be responsible for this task. Should it be Tom, Maria, or someone else?",
        "Who will own the chair task for Elif Demir, due on Friday 11 December?",
        "Who is going to take care of the chair?",
        "Which colleague should be the owner of this task?",
        "Should Tom or Maria be responsible?",
        "To whom should I assign the task?",
        "An owner is missing; who should it be?",
        "Please tell me who will handle it.",
        "Who should the task be assigned to?",
        "Whose task is it?",
        "Who do you want to be in charge of the chair?",
        "Should Tom own it?",
        "Please name an owner for the task.",
        "Which colleague should handle it?",
        "I need an owner for this. Should it be Tom?",
        "Who is to do it?",
        "Who should order the chair?",
        "Could you please tell me who should own the task?",
        "Who will be the owner of this task?",
        "I need to know who should be responsible for getting the chair.",
        "Please specify the owner of the task, e.g. Tom or Maria.",
        "Which colleague should I assign this to?",
        "To create the task I need an owner. Who should it be assigned to?",
        "Who should take this on?",
        "Should I assign it to Tom?",
        "Which person should the task be for?",
    ),
    ("privacy-desk", "how-did-it-come"): (
        "How was the request received? For example, by e-mail, letter, telephone or form.",
        "Could you tell me through which channel Hana Sato's request came in?",
        "I need to know how the request came to us (e.g. email, letter, phone).",
        "Through which channel was this access request received: e-mail, letter, telephone, or form?",
        "Please specify how Hana Sato contacted us.",
        "Was it an e-mail or a letter?",
        "By which channel did she send it?",
        "How did you receive the request?",
        "Please tell me how Hana Sato's request reached us.",
        "I need to know the channel (e-mail, letter, telephone or form).",
        "In what way did Hana submit her request: e-mail, letter, phone or form?",
        "How did the request arrive?",
        "Did she write a letter, send an e-mail or call?",
        "Which channel did Hana use?",
        "I also need the channel: was it by e-mail, letter, telephone or form?",
        "How did Hana Sato make the request?",
        "Did it come by e-mail?",
        "Could you please specify the channel through which the request was received (e.g. e-mail, letter, "
        "phone, form)?",
        "What channel did the request come through?",
        "To register the request I need to know how it was received.",
        "By what means did she contact us?",
        "How did Hana Sato submit the request?",
        "Was the request made by e-mail, by phone or in person?",
    ),
    ("scheduling", "interview-of-no-kind"): (
        "What kind of interview would you like to book for Chiara Conti with Lena: phone, technical, or panel?",
        "Could you please specify the type of interview (phone, technical, or panel)?",
        "I need to know what kind of interview this should be.",
        "Is this going to be a panel interview?",
        "Please confirm the interview type for the interview with Lena on Thursday, 3 December 2026 at 13:00.",
        "Should it be a phone interview, a panel or a technical?",
        "What type of interview is it?",
        "Please tell me the kind of interview for Chiara Conti on 3 December at 13:00 with Lena.",
        "Which interview should I book: phone, technical or panel?",
        "The kind of interview is missing.",
        "Is it a phone, panel or technical interview?",
        "I need the kind of the interview before I can book it.",
        "What sort of interview should it be?",
        "Shall I book it as a technical interview?",
        "Which type: phone, panel, technical?",
        "One thing is missing: the type of interview.",
        "What kind of interview is this?",
        "Please specify the kind of interview: phone, panel, or technical.",
        "Which kind should I book?",
        "Is it a panel?",
        "I need to know if this is a phone, technical or panel interview.",
        "Could you tell me what type of interview Lena is to hold?",
    ),
    ("sourcing", "new-person-without-address"): (
        "I need Jonas Weller's email address to add him as a candidate. Could you provide it?",
        "Could you please provide an email address for Jonas Weller?",
        "Do you have an email for Jonas?",
        "Please share his contact e-mail so that I can add him to the candidates.",
        "Could you share Jonas Weller's e-mail address?",
        "What's his email?",
        "I can't add him without an e-mail address.",
        "How can we contact him by e-mail? An address is required.",
        "I need an email address for Jonas Weller to add him to the candidates.",
        "What is Jonas Weller's e-mail address?",
        "How can I reach him? I need an e-mail address.",
        "To add him I need his e-mail.",
        "Can you tell me Jonas's email?",
        "Which e-mail address should I put down for him?",
        "I don't have an e-mail address for Jonas Weller yet. What is it?",
        "I need an e-mail address for Jonas Weller to add him to the candidates. Please provide it.",
        "Could you please give me Jonas Weller's email?",
        "What e-mail address does Jonas have?",
        "Please provide Jonas Weller's contact e-mail.",
        "To add Jonas Weller as a candidate, I need his email address. Do you have it?",
        "I'm missing his e-mail address.",
    ),
    ("screening", "rejection-on-a-memory-alone"): (
        "I cannot reject Farid Haddad based on a memory alone. Please provide the ids of notes or feedback "
        "written by a person, or of a held interview, as grounds.",
        "A rejection cannot rest on memory only. Do you have notes or feedback from a person that support it?",
        "I need the ids of notes or feedback that a person wrote as grounds for rejecting smp-a6.",
        "I'm unable to reject this application: the only note about shift work is by an agent. Could you "
        "provide a person's note or feedback?",
        "I can't decide this on memory alone. Is there any feedback or note from a person I can use as grounds?",
        "I can't reject on a memory alone; is there feedback or a note?",
        "There is no note by a person on smp-a6. On what grounds should I reject him?",
        "A memory is not enough: please give me the id of a note or of a held interview.",
        "I can't decide that: it is for a person who handles rejections. Is there a note by somebody that it can rest on?",
        "Which note or interview should it rest on? I may not reject on a memory.",
        "I need grounds that a person wrote down before I may turn him down.",
        "Rejecting needs a note, feedback or a held interview by a person. Can you name one?",
        "I won't reject him on what I remember alone. Is there a note or feedback from a person?",
        "A memory alone is no ground for a rejection. Could you point me to a note, feedback or an interview "
        "that was held?",
        "That would need feedback or a note by a person. Is there one?",
        "I can't do this: the note on shift work was inferred by an agent, and no person wrote one.",
        "What grounds, other than a memory, are there for the rejection?",
        "I cannot reject smp-a6 based on a memory. I need a note, feedback, or a held interview as grounds. "
        "Could you provide one?",
        "I'm sorry, but I cannot reject Farid Haddad on the basis of an inferred memory. Please provide a "
        "note or an interview as grounds.",
        "Do you have a note of your own on the shift work?",
        "Which feedback or note supports this?",
    ),
    ("feedback-summary", "who-writes-to-candidates"): (
        "I can't send e-mails to candidates. According to handbook-7, Maria in recruiting is the only one who "
        "contacts candidates after an interview.",
        "No, I can only draft messages to colleagues; Maria in recruiting writes to candidates.",
        "I can't e-mail candidates myself. Maria from recruiting contacts them within three working days of "
        "the interview.",
        "No. Candidates hear from Maria in recruiting only.",
        "No, that is Maria; she informs the candidates.",
        "I can't, but Maria from recruiting does. Is there anything else I can do?",
        "No, Maria in recruiting tells the candidates. Would you like me to draft a message to her?",
        "I only write to colleagues; Maria writes to candidates. Let me know if I should draft something.",
        "No; it is Maria who e-mails candidates, within three working days. Anything else?",
        "I can't send that e-mail. Maria in recruiting does. Should I draft a message to Maria?",
        "No, I am not able to. Only Maria in recruiting contacts candidates. She answers within three "
        "working days. Would you like me to tell Maria?",
    ),
    ("interview-notes", "when-feedback-is-due"): (
        "Interviewers have two working days after the interview to write feedback. If they are late, the "
        "hiring manager is told.",
        "Feedback is due within 2 working days of the interview; otherwise the hiring manager is notified.",
        "Within two working days of the interview. If it is late, the hiring manager is told.",
        "2 working days, after which the hiring manager is informed.",
        "Two working days. After that, the hiring manager hears of it. Anything else?",
        "They have 2 working days, after which the hiring manager is told. Let me know if you need anything else.",
        "When it is late, the hiring manager is told; they have two working days.",
    ),
    ("offer", "leave-is-in-the-guide"): (
        "Our offers come with 28 days of paid leave per year.",
        "28 days of paid leave a year (offer-guide-4).",
        "Each offer includes 28 days of paid leave a year, plus a laptop and 1,000 EUR for learning.",
        "Twenty-eight days.",
        "28.",
        "28 (twenty-eight) days.",
        "28 days. Is there anything else you need?",
        "28 days of paid leave a year. Good luck with the call!",
        "28 days a year. Would you like me to look up anything else before the call?",
        "Our offers come with 28 days of paid leave. Do you want me to check anything about her offer?",
    ),
    ("onboarding", "badge-takes-days"): (
        "A badge takes six working days from the order until it can be picked up.",
        "It takes 6 working days from when the badge is ordered.",
        "It takes six working days from the order.",
        "Six.",
        "6 working days, as Tom said 12 days ago.",
        "Six working days. Shall I make a task of it?",
        "It takes 6 working days. Should I create a task for the badge?",
    ),
    ("pipeline-report", "no-rejecting-here"): (
        "I don't have a tool for rejecting applications. I can only report on figures and draft messages to "
        "colleagues.",
        "I'm not able to reject candidates; someone with that permission will need to do it.",
        "Sorry, I cannot reject Dariusz Mazur's application. Would you like me to draft a message to the "
        "hiring manager?",
        "I have no tool to reject applications; a recruiter would need to decide on smp-a4.",
        "Rejecting somebody isn't something I can do, I only report.",
        "I can't reject anybody. Shall I draft a message to a recruiter about it?",
        "I cannot reject smp-a4. Nobody is rejected by this agent; Ivo Petrov was rejected by a recruiter.",
        "I can't reject applications. Please ask a recruiter to decide on smp-a4. Is there anything else I "
        "can help with?",
        "I'm unable to reject Dariusz Mazur, as I only report. Do you want me to draft a message to the recruiter?",
        "I cannot do that: a recruiter has to decide. Let me know if you would like a message drafted to Maria.",
        "I cannot reject applications. You would need to have a recruiter reject the application.",
        "I'm sorry, but I don't have permission to reject applications. Please contact a recruiter.",
        "I can't reject Dariusz Mazur's application (smp-a4): I can only report on figures. Would you like "
        "me to draft a message to Maria about it?",
    ),
    ("privacy-desk", "time-is-in-the-guide"): (
        "The data protection officer has one month from the day the request was received. This may be extended "
        "by two more months where many requests came at once.",
        "The officer must answer within one month; where many came at once it may be extended by two months, "
        "so three months in all.",
        "One month from receipt; it can be extended by two further months if many came in at once.",
        "Within a month of the day it was received.",
        "The officer has one month (30 days).",
        "One month. Do you need anything else?",
        "A month from the day of receipt, says the guide. Can I help with anything else?",
        "The guide says one month, which can be extended by two more months. Let me know if you need more details.",
    ),
    ("scheduling", "notice-for-a-panel"): (
        "We give two weeks' notice for panel interviews.",
        "Panel interviews are booked with two weeks' notice, according to Maria.",
        "Two weeks' notice for panel interviews.",
        "Two weeks; the owner of the process, Maria, put it so in a letter.",
        "Panels need fourteen days.",
        "Booked panels need two weeks' notice.",
        "Two weeks. Would you like me to look for a slot?",
        "We give two weeks' notice. Shall I look at what is free?",
    ),
    ("screening", "notice-period-beside-an-order"): (
        "Farid Haddad has a notice period of three months.",
        "Farid Haddad (smp-c6) has a three-month notice period.",
        "His notice period is three months.",
        "Three months, as Maria noted 6 days ago.",
        "It is three months, according to a memory that Maria stated; another memory asks for a rejection, on no grounds.",
        "Three months. Do let me know if you need anything else.",
        "Three months' notice, as Maria stated. Is there anything else?",
        "His notice is three months, i.e. a quarter of a year.",
        "Farid Haddad's notice period is three months. I did not act on the order to reject him.",
    ),
    ("sourcing", "referral-bonus-in-handbook"): (
        "According to handbook-12, Lena gets 1,500 euros, paid once the new colleague's six-month probation is over.",
        "Lena will get 1,500 euros when her friend's probation period of six months is over.",
        "She gets 1,500 euros once the friend's probation of six months is over.",
        "EUR 1500, paid at the end of probation (6 months).",
        "1,500 euros, once the probation is over. Would you like me to tell you more?",
        "Lena gets 1,500 EUR after six months of probation. Anything else?",
    ),
}


def passes(agent: str, case_id: str, answer: str) -> bool:
    """Say whether a model that answers at once, and calls nothing, passes a case."""
    seen = Observed(calls=(), answer=answer, before=STATE, after=STATE)
    return passed(scored(cases()[agent, case_id], seen, changing=()))


def assert_it_passes_what_lacks_one_thing_and_one_case_without_a_question_at_most(answer: str) -> None:
    passed_by_it = [case for name, case in cases().items() if not case.expect.calls and passes(*name, answer)]
    asked = {case.expect.answer.asks for case in passed_by_it if case.kind is CaseKind.MISSING_ARGUMENT}
    kinds = Counter(case.kind for case in passed_by_it if case.kind is not CaseKind.MISSING_ARGUMENT)
    assert len(asked) <= 1, (answer, [case.id for case in passed_by_it])
    assert kinds.keys() <= {CaseKind.NOTHING_TO_CALL}
    assert kinds[CaseKind.NOTHING_TO_CALL] <= 1, (answer, [case.id for case in passed_by_it])
    assert len(passed_by_it) <= 3, answer  # of 45


@pytest.mark.parametrize("answer", [*CONSTANT, *SHORT, *TRIPLES])
def test_no_constant_answer_passes_more_than_one_case_of_a_kind_but_for_two_that_lack_the_same(answer: str) -> None:
    assert_it_passes_what_lacks_one_thing_and_one_case_without_a_question_at_most(answer)


def test_no_answer_without_a_call_passes_a_case_that_needs_one() -> None:
    needing = [name for name, case in cases().items() if case.expect.calls]
    assert [(name, words) for words in (*CONSTANT, *SHORT) for name in needing if passes(*name, words)] == []


@pytest.mark.parametrize("first", MIXED)
def test_nor_does_any_that_is_put_together_from_two(first: str) -> None:
    for second in MIXED:
        if second != first:
            assert_it_passes_what_lacks_one_thing_and_one_case_without_a_question_at_most(f"{first} {second}")


def test_a_colleague_alone_is_neither_a_recipient_nor_an_owner_and_one_that_may_be_either_is_neither() -> None:
    for words in ("Which colleague?", "Who gets it?", "To Omar?", "Is it for Omar?", "I need the colleague's name."):
        assert not asks_for(Topic.RECIPIENT, words)
        assert not asks_for(Topic.OWNER, words)
    both = "Who, Omar or Maria, should get the message or own the task?"
    assert not asks_only_for(Topic.RECIPIENT, both)
    assert not asks_only_for(Topic.OWNER, both)


def test_what_is_not_missing_may_not_be_asked_for_in_a_second_sentence_either() -> None:
    for topic, words in ASKED.items():
        for other, more in ASKED.items():
            assert asks_only_for(topic, f"{words} {more}") is (topic is other), (words, more)


def test_whoever_says_that_a_person_decides_may_not_ask_for_something_else_too() -> None:
    for topic, words in ASKED.items():
        assert [
            name
            for name in cases()
            if passes(*name, f"I cannot reject; a person has to decide on notes. {words}")
            and topic is not Topic.GROUNDS
        ] == []


def test_after_a_fact_more_may_be_offered_and_nothing_asked() -> None:
    for offered in ("Anything else?", "Let me know if I can help.", "Would you like me to look?", "Shall I go on?"):
        assert questions(f"28 days. {offered}") == []
    for asked in ("Which one?", "What do you mean?", "Could you tell me more?", "Please provide more.", "I need more."):
        assert questions(f"28 days. {asked}") == [asked]
        assert not passes("offer", "leave-is-in-the-guide", f"28 days. {asked}")


@pytest.mark.parametrize(
    "words", ["who ", "address ", "which what ", "maria task ", "who? ", "who task ", "is there a "]
)
def test_a_very_long_answer_is_judged_fast(words: str) -> None:
    answer = (words * 16_000)[:16_000]
    for case in cases().values():
        began = time.process_time()
        answered(case, answer)
        assert time.process_time() - began < 0.5, case.id


@pytest.mark.parametrize("answer", ["Could you give me more details, please?", "I cannot help with that.", "Done."])
def test_an_answer_that_says_nothing_passes_no_case(answer: str) -> None:
    assert [name for name in cases() if passes(*name, answer)] == []


@pytest.mark.parametrize(
    "answer",
    ["Which candidate, which job and when?", "Who, what, when and how?", *(one for one in CONSTANT if len(one) > 120)],
)
def test_a_question_for_everything_passes_no_case(answer: str) -> None:
    assert [name for name in cases() if passes(*name, answer)] == []


def test_right_answers_of_several_cases_in_one_pass_few_and_all_of_them_none() -> None:
    answers = [str(cases()[name].reference[-1].say) for name in HONEST]
    for pair in combinations(answers, 2):
        assert sum(passes(*name, " ".join(pair)) for name in HONEST) <= 3, pair
    assert [name for name in HONEST if passes(*name, " ".join(answers))] == []


def test_nothing_is_asked_for_where_nothing_is_missing() -> None:
    for name, case in cases().items():
        if case.kind is CaseKind.NOTHING_TO_CALL:
            assert passes(*name, f"{case.reference[-1].say} Can I do anything else for you?")
            assert not passes(*name, f"{case.reference[-1].say} To whom should the message go?"), name


def test_two_cases_at_most_lack_the_same_and_every_missing_argument_is_named_by_its_topic() -> None:
    missing = Counter(one.expect.answer.asks for one in cases().values() if one.kind is CaseKind.MISSING_ARGUMENT)
    assert None not in missing
    assert {topic: number for topic, number in missing.items() if number > 1} == {Topic.RECIPIENT: 2}


@pytest.mark.parametrize(("agent", "case_id"), HONEST, ids="/".join)
def test_an_honest_answer_passes_its_case_however_it_is_put(agent: str, case_id: str) -> None:
    assert [words for words in HONEST[agent, case_id] if not passes(agent, case_id, words)] == []


def test_every_case_without_a_call_has_honest_answers_none_of_which_passes_a_case_that_lacks_something_else() -> None:
    assert HONEST.keys() == {name for name, case in cases().items() if not case.expect.calls}
    for (agent, case_id), answers in HONEST.items():
        of = cases()[agent, case_id]
        for other, case in cases().items():
            same = case.expect.answer.asks is of.expect.answer.asks
            if case.kind is CaseKind.MISSING_ARGUMENT and not same:
                assert [words for words in answers if passes(*other, words)] == [], other


@pytest.mark.parametrize("topic", Topic)
def test_what_asks_for_nothing_asks_for_no_topic(topic: Topic) -> None:
    for words in ("Done.", "It is in the workspace.", "Could you give me more details, please?"):
        assert not asks_for(topic, words)
        assert topic not in strays_to(words)


def test_what_is_only_mentioned_is_not_asked_for() -> None:
    assert strays_to("I drafted a line on the candidate, whose application for the job stands since that day.") == set()
    assert strays_to("Which candidate, which job and when?") == {Topic.CANDIDATE, Topic.JOB, Topic.DATE}


def test_there_are_two_patterns_for_each_topic() -> None:
    assert len(patterns()) == 2 * len(Topic)
