"""What the demo organisation remembers about people."""

from __future__ import annotations

from types import MappingProxyType

from memory_core.demo.topics import Lasts, Sayer, Topic

CANDIDATES = (
    Topic(
        name="cv",
        stage=0,
        agents=("agent:sourcing",),
        source="msg",
        said=(
            "Came through a referral from a former colleague of ours; agreed to be contacted about this role.",
            "Replied to our message within a day and asked for the full description of the {job} role.",
            "Met at a meetup in {city}; asked to hear about roles such as {job}.",
            "Sent an updated CV that adds {skill2}; the earlier one can be ignored.",
            "Was on our list for an earlier role at {client} and asked to be told when the next one opens.",
        ),
        inferred=(
            (
                "CV lists {skill} and {skill2}; the longest post so far was {one_of:four|five|six|seven} years with"
                " one employer."
            ),
            "Looks like a close match for this role on {skill}; {skill2} appears only once in the CV.",
            "CV was read with overlapping dates in the last two posts; worth asking, not yet checked.",
            "CV mentions a certificate in {skill} from {my:-500}; the certificate itself is not attached.",
            "Public profile and CV agree on dates and titles; {skill} appears in the last three posts.",
            "Cover letter refers to the {job} advert by name and asks about team size.",
            (
                "Appears to have led a group of {one_of:three|four|six} in the last post; the CV does not say for"
                " how long."
            ),
            "CV names {skill} in two projects and gives numbers for one of them.",
        ),
    ),
    Topic(
        name="notice",
        stage=1,
        agents=("agent:screening",),
        source="call",
        said=(
            "Notice period is {notice}, always to the end of a month.",
            "Has {notice}' notice and would ask to leave a little earlier by using up holiday.",
            "Could start {notice} after signing and would not need a break in between.",
            "Contract says {notice}, and the employer has agreed to less before; not to be counted on.",
            "Would hand in notice only once the written offer is here, so count {notice} from then.",
            "Gave {notice} as notice period; a handover of two weeks is the part that cannot be shortened.",
        ),
        inferred=(
            "Seems to have {notice}' notice, going by the phone note; the contract has not been seen.",
            "Probably needs {notice} from the day of signing, so a start before {month:60} looks unlikely.",
            "Earliest start appears to be in {month:110}: {notice}' notice and some leave already booked.",
            "Form gives {notice}' notice, the chat says an immediate start; ask which one holds.",
            "The application says {notice}; whether that runs to the end of a month is not stated.",
        ),
    ),
    Topic(
        name="salary",
        stage=1,
        agents=("agent:screening",),
        source="call",
        said=(
            "Said {salary} is the figure at which a move makes sense, and {salary_top} with a change of city.",
            "Looking for {salary} to {salary_top} gross a year, bonus on top.",
            "Gave {salary} as the minimum and asked that it not be passed on before the first interview.",
            "Would accept {salary} if training days are paid.",
            "Asked for the band before naming a figure, then said {salary} to {salary_top}.",
            "Cares more about the pension contribution than about the last thousand; {salary} would do.",
            "Expects {salary_top}, of which a part may be a bonus that is written into the contract.",
        ),
        inferred=(
            "Salary range in the form is {salary} to {salary_top}; the band for the role is {low} to {high}.",
            "Expected pay seems to be near {salary}: the message gives a monthly figure, multiplied by twelve here.",
            "Range given is {salary} to {salary_top}; whether it is negotiable was not said.",
            (
                "Two figures are on file, {salary} in the form and {salary_top} in the call note; the call is the"
                " later one."
            ),
            "Asked twice whether {salary_top} is within reach; the answer is not recorded.",
        ),
    ),
    Topic(
        name="workplace",
        stage=1,
        agents=("agent:screening",),
        source="msg",
        said=(
            "Wants to work from {city} and come to {job_city} two days a week.",
            "Would move to {job_city} within three months if {client} helps with the first month's rent.",
            "Prefers three days at home; fine with fixed office days if they are known a month ahead.",
            "Needs a quiet place for calls; open-plan is fine otherwise.",
            "Happy to travel up to {one_of:one week a month|two weeks a quarter|three days a month}.",
            "Not looking to relocate; asked whether the {job} role could be done from {city}.",
            "Asked to be in the office most days and to have a desk of one's own there.",
            "Can be on site in {job_city} on any two days, as long as they are the same every week.",
        ),
        inferred=(
            "Seems to prefer hybrid work: both messages ask about office days before anything else.",
            "Appears open to moving to {job_city}: the form says yes and the letter asks about housing.",
            "Form says on site is possible from {month:60}; until then remote from {city}.",
            "Office days are not mentioned in any message so far; to be asked in the first call.",
            "Profile gives {city} as place of work; willingness to travel to {job_city} is left open.",
        ),
    ),
    Topic(
        name="permit",
        stage=1,
        agents=("agent:screening",),
        source="msg",
        said=(
            "Work permit appointment is on {wd:24}; the office quotes six weeks from then.",
            (
                "Has permission to work in {country} without limits; the check is due on the first day, as for"
                " everybody."
            ),
            (
                "Permit is tied to the present employer; a change takes {one_of:four to six|six to eight} weeks"
                " after signing."
            ),
            "A permit application would be new; asked us to state the gross salary in the contract for it.",
            "Present permit runs until {my:500}, well past the probation period.",
            "Permit extension was handed in on {d:-10}; the receipt allows work to go on.",
        ),
        inferred=(
            "Right to work in {country} is left open in the form. To be asked, not assumed.",
            "Visa timing seems to be the longest step; with the dates given, a start before {d:70} looks tight.",
            "Form says the right to work is settled; the document check is due at the offer stage.",
        ),
    ),
    Topic(
        name="contact",
        stage=1,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Prefers e-mail; calls only after 17:30.",
            "Best reached by phone between 12:00 and 13:00, otherwise by text message.",
            "Asked us not to call the work number.",
            "Wants all dates in writing, also those agreed on the phone.",
            "Uses a new e-mail address since {d:-6}; the old one bounces.",
            "Please write to the private address only; the other one belongs to the employer.",
            "Asked to be called by the first name, in mails as well.",
        ),
        inferred=(
            "Replies came fastest to short messages with two proposed times.",
            "Voicemail on the last two attempts; the e-mail was answered the same day.",
            (
                "Seems to write times in {one_of:Central European|British|Eastern European} time; confirm the zone"
                " when proposing any."
            ),
            "Two of three replies arrived after 19:00; a message in the afternoon may be read the same day.",
        ),
    ),
    Topic(
        name="motivation",
        stage=1,
        agents=("agent:screening",),
        source="call",
        said=(
            "Wants to move from standby duty to planned projects.",
            "Is looking for more {skill} and fewer status meetings.",
            "Asked for a role without line management for the first year.",
            "Would like to go down to 80 % from the second year.",
            "Has used {client} as a customer and brought a list of things to improve.",
            "Wants to keep a teaching day once a month at the college.",
            "The last role was a fixed-term contract that has come to its end.",
            "Prefers small teams; the present one has {one_of:four|five|six|seven} people.",
            "Hopes to work with {skill2} more often than now.",
        ),
        inferred=(
            (
                "Seems most interested in the {skill} part of the role: three questions were about it and none about"
                " budget."
            ),
            "Probably looking for something permanent: the last two contracts were fixed-term.",
            "Messages suggest that the training budget matters; it came up in both.",
            "Letter speaks mostly of {skill}; the wish to work on {skill2} is one sentence at the end.",
        ),
    ),
    Topic(
        name="portfolio",
        stage=0.5,
        agents=("agent:sourcing",),
        source="msg",
        said=(
            "Portfolio is at {site}; the second project is the one to look at.",
            "Sent a link to {site} and asked us not to forward it outside the panel.",
            "Work samples at {site} are behind a password; ask before each viewing.",
            "Says {site} is out of date and a new version will be up by {d:12}.",
        ),
        inferred=(
            "Portfolio at {site} shows {one_of:three|four|five} projects; the newest is from {my:-120}.",
            "Page at {site} loads, and two of the case studies are marked as confidential.",
            "Site {site} has a section on {skill}; slides are linked, no recordings.",
            "The address {site} in the CV and the one in the form are the same; last change seen in {month:-40}.",
        ),
    ),
    Topic(
        name="skills",
        stage=1.5,
        agents=("agent:screening",),
        source="form",
        said=(
            "Has used {skill} every day for the last {one_of:two|three|four} years; {skill2} only in courses.",
            "Said {skill2} is the part still to learn; has begun a course that ends on {d:50}.",
            "Can show a certificate in {skill}; the original is at home in {city}.",
            "Wrote the team's guide to {skill} in the present job and may share a redacted copy.",
            "Works in English every day and would take the interview in English.",
            "Has trained {one_of:two|three|five} colleagues in {skill} over the last year.",
        ),
        inferred=(
            "Screening answers on {skill} were complete; the one on {skill2} was left empty.",
            "Four of the five skills asked for are named in the form; {skill2} is the one that is not.",
            "Answer about {skill} gives an example with numbers; their source was not asked.",
            "Experience with {skill2} appears to come from one project in {my:-700}; depth unknown.",
            "The form and the call note differ on {skill2}: basic in one, good in the other.",
        ),
    ),
    Topic(
        name="documents",
        stage=1.2,
        agents=("agent:screening",),
        source="form",
        said=(
            "Degree certificate is being translated; expected by {d:20}.",
            "Offered a copy of the ID; told that it is not needed before an offer.",
            "Asked how long we keep the application; sent the privacy notice the same day.",
            "Wants the CV shown to {client} only, not to other clients.",
        ),
        inferred=(
            "The newly uploaded file seems to be the same CV as before under another name.",
            "The form was submitted twice; the second has the corrected telephone number.",
            "Consent to keep the profile for other roles is ticked in the form of {d:-2} and not in the one before.",
            "Two documents are still missing from the file: the certificate and the signed privacy notice.",
        ),
    ),
    Topic(
        name="availability",
        stage=2,
        lasts=Lasts.BRIEF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Free for a call on {wd:3} at {time} or on {wd:6} after 15:00.",
            "Away from {d:5} to {d:15} and not reading e-mail.",
            "Can do interviews before 9:00 or after 17:00 while still employed.",
            "No interviews in the week of {week:9}: quarter-end in the present job.",
            "Could come from {city} to {job_city} in person on {wd:12}; the train arrives at 10:40.",
            "Mondays do not work until {d:28}; every other day does.",
            "Asked for at least three days between the first interview and the {exercise}.",
            "Keeps {dow:6} mornings free for interviews this month.",
        ),
        inferred=(
            "Proposed slots are {wd:2} at 10:30 and {wd:5} at 14:00. Neither is confirmed.",
            "Calendar link shows free afternoons in the week of {week:9}.",
            "Accepted {wd:4}, then asked to move it by an hour; the new time is not yet in the calendar.",
            (
                "Seems not to be free on Fridays: two proposals for a Friday were turned down, no reason given or"
                " needed."
            ),
            "Out-of-office reply runs until {d:8}; next contact is planned for the day after.",
        ),
    ),
    Topic(
        name="booked",
        stage=2.5,
        lasts=Lasts.BRIEF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "First interview booked for {wd:4} at {time}, 60 minutes, by video.",
            "Meeting set for {wd:9} at {time} in the {job_city} office; visitor badge ordered.",
            "Interview moved from {dow:2} to {wd:6} at the panel's request.",
            "Needs the address and the name at reception one day before the visit on {wd:7}.",
            "Call on {wd:3} stands, also if the second interviewer cannot join.",
        ),
        inferred=(
            "Interview on {wd:5} at {time} was confirmed by both sides.",
            "The invitation went out with the wrong time zone and was sent again; the second one counts.",
            "Reminder for {wd:3} was sent; no reply is needed.",
            "The interview on {wd:8} has two of three interviewers; a substitute has been asked.",
            "Room and video link for {wd:6} are booked; parking is not.",
        ),
    ),
    Topic(
        name="format",
        stage=2.2,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Would like the task for the {exercise} in writing a day ahead.",
            "Prefers a video call to a telephone call, with cameras on for both sides.",
            "Asked whether the {exercise} can be done on one's own laptop; told yes.",
            "Wants to meet a future colleague without the manager in the room.",
            "Asked for a short break between the two parts of the panel.",
            "Asked who will be on the panel; names and roles were sent.",
        ),
        inferred=(
            "Browser test for the video room failed once and passed in Firefox.",
            "Has done the {exercise} with us before, in {my:-200}; use the other version.",
            "Seems to expect 45 minutes for the first interview; the invitation says 60.",
            "Confirmed the video link and not the dial-in number; both are in the invitation.",
        ),
    ),
    Topic(
        name="elsewhere",
        stage=2.1,
        lasts=Lasts.BRIEF,
        agents=("agent:screening",),
        source="call",
        said=(
            "Is in a second process and expects an answer there by {d:14}.",
            "Has one other offer, open until {wd:10}; asked us for a date, not for a decision.",
            "Turned down another offer because of the office location.",
            "No other applications at present, and no hurry.",
            "Interviewing in two other places; both are a round behind us.",
        ),
        inferred=(
            "May have a deadline elsewhere: asked twice when {client} decides.",
            "An answer by {d:12} would probably be in time for the other process; the date is from the chat.",
            "Mentions another process in passing; no dates given, none asked.",
        ),
    ),
    Topic(
        name="interview",
        stage=3,
        sayer=Sayer.INTERVIEWER,
        agents=("agent:interview-notes", "agent:feedback-summary"),
        source="note",
        said=(
            "In the {exercise}: explained each step and each choice, then ran out of time on the last part.",
            "Asked good questions about {skill} before starting the {exercise}, among them what counts as done.",
            ("Finished the first half of the {exercise} in twenty minutes and talked through the rest in outline."),
            "Knew {skill} in depth. On {skill2} answered from theory, and said so.",
            "I would have liked more detail on how the last project was checked; there was no time to ask.",
            "Gave a clear example of handing work over to another team, with dates.",
            "Kept to a simple approach in the {exercise} and named its limits when asked.",
            "My notes cover only the first 40 minutes: I had to leave for another call.",
            "Two strong examples for {skill}, one short one for {skill2}; scores are in the form.",
            "Asked for a moment during the {exercise}, read the task again and corrected an earlier answer.",
        ),
        inferred=(
            "Notes mention {skill} as the strongest part and {skill2} as the part with the least time spent on it.",
            "Transcript of the {exercise} is missing from minute 31 to 38; the summary does not cover it.",
            "Two interviewers rated the {exercise} differently, 3 of 4 and 2 of 4, for much the same reasons.",
            "Summary of {one_of:two|three} feedback forms: agreement on {skill}; the open point is {skill2}.",
            "The notes quote a question about team size that nobody answered; it is still open.",
            (
                "Feedback on the {exercise} seems to refer to another version of the task; check with the panel"
                " before use."
            ),
            "Scores for {skill} are given without an example in one of the forms.",
        ),
    ),
    Topic(
        name="questions",
        stage=3.2,
        agents=("agent:interview-notes",),
        source="note",
        said=(
            "Asked how weekend work is paid and how often it comes round.",
            "Asked who the manager would be after the reorganisation in {month:60}.",
            "Wanted to know how many people left the team in the last year; answered with the number.",
            "Asked for the training budget in writing.",
            "Wants to see the workplace in {job_city} before signing anything.",
            "Asked what the first ninety days would look like; the manager will send half a page.",
        ),
        inferred=(
            "Questions still open from the interview: probation length, equipment, travel to {job_city}.",
            "Asked about a home-office allowance; page 4 of the policy seems to answer it and was not sent.",
            "A question about {skill2} at {client} was asked twice and answered once.",
        ),
    ),
    Topic(
        name="outcome",
        stage=4,
        agents=("agent:feedback-summary",),
        source="note",
        said=(
            "Panel wants a second conversation about {skill2} before it decides.",
            "{client} asked to see the result of the {exercise}; sent on {d:0}.",
            "Panel recommends the next round; the hiring manager decides by {wd:5}.",
            "Told by phone that the decision moves to {wd:8}; asked for one line by e-mail too.",
            "Asked for feedback whatever the outcome; promised for the week after the decision.",
            "Panel suggested a look at a second role at {client} if this one is filled.",
        ),
        inferred=(
            "All forms are in since {d:-1}; no decision is recorded yet.",
            "Panel notes lean towards another round; the decision is the hiring manager's and is not recorded.",
            "One feedback form of three is missing; the summary rests on the other two.",
            "Open points after the panel: start date, office days, {skill2}.",
        ),
    ),
    Topic(
        name="references",
        stage=4.5,
        agents=("agent:references",),
        source="msg",
        said=(
            "Named two referees; the second may be contacted only after an offer.",
            "Asked that the present employer not be contacted before the contract is signed.",
            "Reference from the last manager confirmed dates and title; nothing else was asked.",
            "Prefers a written reference; the form was sent on {d:0}.",
        ),
        inferred=(
            "Reference form came back with the dates confirmed and the free-text field empty.",
            "One of two reference requests has had no answer since {d:-9}.",
            "Employment dates in the reference and the CV differ by one month; it may be the notice period.",
        ),
    ),
    Topic(
        name="offer",
        stage=5,
        agents=("agent:offer",),
        source="msg",
        said=(
            "Offer made by phone on {d:0}: {salary}, based in {job_city}, start to be agreed.",
            "Wants the home-office days in the contract, not only in the letter.",
            "Asked for a week to read the contract; the answer is due on {wd:7}.",
            "Accepted by phone on {d:0}; the signature is to follow by post.",
            "Asked for the same notice period on both sides; legal agreed.",
            "Would sign at {salary_top}; {client} offered {salary} and one extra week of leave.",
            "Asked for an English reading copy beside the contract.",
        ),
        inferred=(
            "Offer letter was opened on {d:-1} and is not signed yet.",
            "The draft says {one_of:37.5|38|39} hours; the number in the call note is 40.",
            "Seems to be waiting for an answer on relocation costs before signing.",
            "Title in the draft differs from the advert; {job} is the agreed one.",
            "Signed copy has arrived; page 3 lacks initials.",
        ),
    ),
    Topic(
        name="joining",
        stage=6,
        agents=("agent:onboarding",),
        source="form",
        said=(
            "Wants to pick up the laptop in person rather than have it sent to {city}.",
            "First day is remote; keys and badge follow in the second week.",
            "Will bring the original certificates on the first day.",
            "Asked for a second screen and a German keyboard layout.",
            "Would like to join the team lunch on {wd:10}, before the first day.",
        ),
        inferred=(
            "Bank details and tax form are missing; a reminder is planned for {d:6}.",
            "Account request uses the name in the contract; the chat gives another preferred spelling.",
            "Equipment form is complete apart from the delivery address.",
            "Onboarding plan puts {skill} training in week two; no trainer is named yet.",
        ),
    ),
    Topic(
        name="closing",
        stage=7,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Withdrew on {d:0} for a role nearer to {city}. Glad to hear from us again in a year.",
            "Not going further with {client}; asked to stay on the list for roles in {city}.",
            "Paused the search until {month:60}; please do not chase.",
            "Told of the decision by phone, with the panel's reasons; the letter went out the same day.",
        ),
        inferred=(
            "No reply to the last two messages; the process would close on {d:14} unless somebody objects.",
            "Seems to have paused the search: the message of {d:-1} says not this quarter.",
        ),
    ),
)

RECRUITERS = (
    Topic(
        name="cover",
        lasts=Lasts.BRIEF,
        sayer=Sayer.ITSELF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Covers {client} while the account lead is away, until {d:20}.",
            "On leave from {d:6} to {d:20}; the scheduling desk stands in.",
            "At a trade fair on {wd:11}; calls only in an emergency.",
        ),
        inferred=(
            "Calendar is full until {wd:4}; new first calls would have to go after that.",
            "Has fourteen open roles in the ATS; two of them show no activity since {d:-20}.",
        ),
    ),
    Topic(
        name="habits",
        sayer=Sayer.ITSELF,
        agents=("agent:interview-notes", "agent:scheduling"),
        said=(
            "Does not take calls before 9:30; the first hour is for sourcing.",
            "Wants summaries of candidates in five lines, with the open questions last.",
            "Wants no automatic messages in the own name; drafts only.",
            "Works from home on {one_of:Wednesdays|Thursdays|Fridays}.",
        ),
        inferred=(
            "Edits most drafts to remove exclamation marks; drafts without them go out unchanged.",
            "Usually books first interviews at {time}; proposals for that time were kept.",
            "Seems to prefer phone notes in bullet points.",
            "Drafts in German go to a second reader before sending; that was asked for twice.",
        ),
    ),
    Topic(
        name="remit",
        sayer=Sayer.ANYBODY,
        agents=("agent:offer",),
        said=(
            "Signs offers up to {one_of:EUR 70,000|EUR 75,000|EUR 80,000}; above that the head of desk signs.",
            "Has the relation with {client}; ask before writing to them.",
            "Looks after the {job} role and the two before it at {client}.",
            "Trains new starters in the ATS on the first Tuesday of the month.",
        ),
        inferred=("Approves most offer letters within two hours between 10:00 and 16:00.",),
    ),
)

INTERVIEWERS = (
    Topic(
        name="free",
        lasts=Lasts.BRIEF,
        sayer=Sayer.ITSELF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Not available for panels from {d:4} to {d:18}.",
            "Can take one more panel before {d:15}, none in the week after.",
            "Swapped the panel of {wd:5} for the one on {wd:8}.",
            "In another time zone until {d:12}: afternoons only.",
        ),
        inferred=(
            "Appears to be on two panels at the same time on {wd:3}; one needs a substitute.",
            "Declined the last invitation for 8:30; later slots were accepted.",
            "Calendar seems to block 12:30 to 13:30; slots there were moved twice.",
            "Has not answered the invitation for {wd:4}; the one for the week after is accepted.",
        ),
    ),
    Topic(
        name="ways",
        sayer=Sayer.ITSELF,
        agents=("agent:scheduling", "agent:interview-notes"),
        said=(
            "Interviews on Tuesdays and Thursdays only, never two in a row.",
            "Needs the CV and the scorecard the day before, not the same morning.",
            "Prefers to open the interview; the second person takes the notes.",
            "Takes at most three interviews a week.",
            "Wants the core questions agreed before each panel.",
            "Likes fifteen minutes between two interviews to finish the form.",
        ),
        inferred=(
            "Feedback forms usually arrive within a day of the interview.",
            "Scorecard used in the last panel is the version before the change of {d:-20}.",
            "Seems to prefer {time} starts; four of the last five panels began then.",
        ),
    ),
    Topic(
        name="role",
        sayer=Sayer.ANYBODY,
        agents=("agent:feedback-summary",),
        source="note",
        said=(
            "Would like to shadow one panel for the {job} role before leading one.",
            "Did the panel training in {my:-90} and may lead panels.",
            "Can interview in English and {one_of:German|French|Spanish|Portuguese}.",
            "Asked to be left out of panels for people from a former team.",
            "Wrote the present version of the {exercise} and its scoring guide.",
            "Stands in for the hiring manager of the {job} role at debriefs until {d:40}.",
        ),
        inferred=(
            "Covers {skill} in most panels; {skill2} usually falls to the second interviewer.",
            "Panel training seems to date from {my:-690}; due again soon if that is right.",
        ),
    ),
)

REFEREES = (
    Topic(
        name="reach",
        agents=("agent:references",),
        source="msg",
        said=(
            "Will take a call on {wd:4} between 14:00 and 16:00.",
            "Answers reference questions by e-mail only, in two or three days.",
            "Would rather give the reference by phone, without a recording.",
            "Changed company; the new address is on file and the reference stands.",
        ),
        inferred=(
            "Mail bounced once and went through on {d:-1}.",
            "Reply is expected by {d:7}; the form says two working days.",
        ),
    ),
    Topic(
        name="reference",
        stage=1,
        agents=("agent:references",),
        source="form",
        said=(
            "May confirm dates and title; company policy allows nothing more.",
            "Was line manager of the candidate until {my:-300}, as the form says.",
            "Asked that the reference be deleted once the position is filled.",
        ),
        inferred=(
            "The reference seems to be about an earlier role than the one in the CV.",
            "Signature on the form has another spelling of the name; probably a transliteration.",
            "The form was filled in on a phone; two answers are cut off.",
        ),
    ),
)

EMPLOYEES = (
    Topic(
        name="work",
        agents=("agent:onboarding",),
        source="note",
        said=(
            "Joined on {d:-30}; the probation talk is planned for {wd:60}.",
            "Would act as a buddy for new starters in {city}.",
            "Asked to be considered for internal roles in {city} from {month:90}.",
        ),
        inferred=("Mentor hours seem to end on {d:45}; no follow-up is planned.",),
    ),
    Topic(
        name="kit",
        stage=0.5,
        agents=("agent:onboarding",),
        source="form",
        said=("Referred two people this year; the second bonus is due in {month:30}.",),
        inferred=(
            "Badge order is still open; the photo has not been uploaded.",
            "Return of the first laptop seems not to be recorded.",
        ),
    ),
)

CONTACTS = (
    Topic(
        name="wishes",
        agents=("agent:client-notes",),
        source="msg",
        said=(
            "Signs off shortlists for {client}; wants no more than four names.",
            "Prefers one weekly mail on {one_of:Tuesday|Thursday} to single messages.",
            "Wants CVs without names in the first round.",
            "Needs five working days for anything the legal department must see.",
        ),
        inferred=("Seems to read attachments on a phone: asked twice for the text in the mail itself.",),
    ),
    Topic(
        name="reach",
        stage=0.5,
        lasts=Lasts.BRIEF,
        agents=("agent:client-notes",),
        source="call",
        said=(
            "Is away until {d:10}; the deputy may approve interviews, not offers.",
            "Wants to see the shortlist for the {job} role by {wd:6}, in person if possible.",
        ),
        inferred=(
            "Answers within an hour in the morning and the next day after 15:00.",
            "The meeting of {wd:3} has no agenda yet; the last three had one.",
        ),
    ),
    Topic(
        name="remit",
        stage=1,
        agents=("agent:client-notes",),
        said=(
            "Approves interview dates for the {job} role; offers go to the finance director.",
            "Is the one to call at {client} when an interview has to be moved on the day.",
        ),
        inferred=("Appears to share a mailbox with a colleague: two replies had another signature.",),
    ),
)

APPLICANTS = (
    Topic(
        name="application",
        agents=("agent:screening",),
        source="form",
        said=(
            "Applied through the website for the {job} role; asked whether part-time is possible.",
            "Applied once before, in {my:-400}; that file was closed and is not to be used.",
        ),
        inferred=(
            "Form is complete; the CV is a photo and could not be read, so no skills were taken from it.",
            "Seems to have applied for two roles with the same letter.",
        ),
    ),
    Topic(
        name="question",
        stage=0.5,
        lasts=Lasts.BRIEF,
        agents=("agent:screening",),
        source="msg",
        said=(
            "Wants an answer by {d:10} because of a course that starts then.",
            "Asked which data we keep and for how long; the privacy notice was sent on {d:0}.",
        ),
        inferred=("Asked by chat whether the application arrived; the confirmation seems to have gone to spam.",),
    ),
)

ABOUT_PEOPLE = MappingProxyType(
    {
        "candidate": CANDIDATES,
        "recruiter": RECRUITERS,
        "interviewer": INTERVIEWERS,
        "referee": REFEREES,
        "employee": EMPLOYEES,
        "contact": CONTACTS,
        "applicant": APPLICANTS,
    }
)
