"""What the demo organisation remembers about its own work."""

from __future__ import annotations

from types import MappingProxyType

from memory_core.demo.topics import Lasts, Sayer, Topic

GENERAL = (
    Topic(
        name="scheduling",
        lasts=Lasts.STANDING,
        sayer=Sayer.RECRUITER,
        agents=("agent:scheduling",),
        said=(
            "Panel interviews need two weeks' notice.",
            "First interviews take 60 minutes at most, with 15 minutes free before the next one.",
            "No invitations go out between 20:00 and 7:00 in the candidate's time zone.",
            "Always offer three slots on at least two different days.",
            "Interviews across more than three time zones start between 13:00 and 16:00 UTC.",
            "Room Elbe in Hamburg has no camera; use Room Alster for hybrid panels.",
            "A second change of date is made by phone, not by a third e-mail.",
            "Reminders go out one working day ahead, at 9:00 local time.",
            "Public holidays differ by office: check the calendar of the interviewer's office, not ours.",
            "Candidates who travel more than two hours get a slot between 11:00 and 15:00.",
        ),
        inferred=(
            "Invitations sent before noon seem to be answered the same day about twice as often as later ones.",
            "The booking tool appears to drop the dial-in number when a meeting is moved.",
            "Tuesday 10:00 is the most contested panel slot: three conflicts in four weeks.",
            (
                "Two of the shared calendars seem to show local time without a zone; read them as Lisbon time until"
                " that is fixed."
            ),
            "Rooms booked for 45 minutes are mostly used for 60.",
            (
                "Slots offered as a list were confirmed sooner than a calendar link in the last twenty cases; a"
                " small sample."
            ),
        ),
    ),
    Topic(
        name="dates",
        lasts=Lasts.BRIEF,
        sayer=Sayer.ANYBODY,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "The week of {week:24} is the offsite: no panels, first calls are fine.",
            "The Lisbon office is closed from {d:30} to {d:34} for rewiring.",
            "The video tool is updated on {wd:6} after 18:00; no interviews that evening.",
            "Budget for assessment tools is used up until {month:40}; take the in-house exercises.",
            "Room Alster is taken by training from {d:10} to {d:13}.",
            "The careers page is frozen from {d:7} to {d:11}; adverts in that time go out by mail.",
        ),
        inferred=(
            "Panel rooms in London are booked out on {wd:9}; Bristol still has two.",
            "Mail to addresses of one provider seems to be delayed since {d:-1}, by about two hours.",
            "Interview load peaks in the week of {week:11}: 31 against an average of 19.",
        ),
    ),
    Topic(
        name="panels",
        lasts=Lasts.STANDING,
        sayer=Sayer.ANYBODY,
        agents=("agent:feedback-summary", "agent:interview-notes"),
        said=(
            "A panel has three people, one of them from outside the hiring team.",
            "Nobody joins a panel without the training of the last 24 months.",
            "Scorecards are filled in before the panel members talk to each other.",
            "Every candidate for one role gets the same core questions in the same order.",
            "Notes are about answers and work samples, never about private life.",
            "The hiring manager speaks last in the debrief.",
            "Debriefs take place within two working days; after that the scores are read as they stand.",
            "A score without a reason goes back to its author.",
            "Interviewers who know a candidate say so before the panel is set.",
            "Take-home tasks take three hours at most; anything longer is paid.",
        ),
        inferred=(
            "Feedback forms with fewer than 40 words are mostly sent back by the desk.",
            "The scale seems to be read in two ways: 2 of 4 for 'meets the need' in some panels, 3 of 4 in others.",
            "Automatic transcripts garble product names; summaries should quote the form instead.",
            "Most open points after debriefs concern start date or office days, not skills.",
        ),
    ),
    Topic(
        name="offers",
        lasts=Lasts.STANDING,
        sayer=Sayer.RECRUITER,
        agents=("agent:offer",),
        said=(
            "Offers are made by phone first and confirmed in writing the same day.",
            "An offer letter names gross annual pay, hours, place of work, start date and the day the offer ends.",
            "Offers stay open for seven working days unless the client asks otherwise.",
            "The words 'subject to references' stand in the first paragraph of an offer letter.",
            "No bonus figure in an offer letter; refer to the bonus plan by its date.",
            "Relocation help is a lump sum of EUR 3,000, paid with the second salary.",
            "Fixed-term contracts for Germany go out on paper for a handwritten signature.",
            "Two people read every offer letter before it is sent.",
            "Probation is three months for fixed-term roles and six months otherwise.",
            "Salary history is never asked for; expectations may be.",
        ),
        inferred=(
            "The letter template still says 'Annex B', which is now called 'Annex 2'.",
            "Offer letters sent as PDF seem to open everywhere; two sent as DOCX lost their tables.",
            "Offers that state the office days appear to need one round of questions less.",
            "Start dates in offers usually fall on the 1st or the 15th; others came back from payroll.",
        ),
    ),
    Topic(
        name="offices",
        sayer=Sayer.ANYBODY,
        agents=("agent:scheduling", "agent:onboarding"),
        said=(
            "Hybrid means two fixed office days, agreed with the team, not with us.",
            "Working from another EU country is allowed for 30 days a year.",
            "Visitors to the Hamburg office are announced by 16:00 the day before.",
            "The London office has step-free access by the side entrance on Mill Lane.",
            "Dublin has eight desks for visitors; book them together with the room.",
            "Travel to interviews is refunded within ten days; photos of the receipts are enough.",
            "Home-office equipment is ordered once the contract is signed, not before.",
        ),
        inferred=(
            "Parking at the Rotterdam site seems to be full after 8:15; invitations could suggest the tram.",
            "Reception in Copenhagen appears to need a visitor's name as on the ID.",
        ),
    ),
    Topic(
        name="ats",
        sayer=Sayer.RECRUITER,
        agents=("agent:sourcing", "agent:screening"),
        source="note",
        said=(
            "The ATS cuts notes at 4,000 characters without saying so.",
            "Never merge two profiles in the ATS because of an equal name; compare e-mail and ATS id.",
            "Status 'Parked' in the ATS stops all automatic mails; 'Waiting' does not.",
            "ATS exports use semicolons and a Windows encoding; names break when they are opened as UTF-8.",
            "Requisitions older than 180 days close by themselves on the first of the month.",
            "Leave the field 'Source 2' empty; the monthly report counts it twice.",
            "Moving a card to 'Offer' sends a mail to finance at once.",
        ),
        inferred=(
            "ATS search seems to ignore accents in first names and not in surnames.",
            "Names in right-to-left scripts appear reversed in the ATS print view; the record itself is right.",
            "Duplicate applications in the ATS mostly come from a second e-mail address.",
            "Attachments over 10 MB seem to be dropped by the import without a message.",
            "The ATS mail queue is slow on Mondays between 8:00 and 9:00.",
        ),
    ),
    Topic(
        name="privacy",
        lasts=Lasts.STANDING,
        sayer=Sayer.RECRUITER,
        agents=("agent:sourcing",),
        said=(
            "Profiles without a live process are deleted after six months unless the person agreed to longer.",
            "Requests for access or erasure go to the data protection mailbox on the day they arrive.",
            "Write every note so that the person it is about could read it.",
            "No copies of identity documents before an offer.",
            "Photos are taken out of CVs before a shortlist goes to a client.",
            "Agents may draft; people send.",
            "No decision about a person rests on a memory alone: the file and the panel decide.",
            "Summaries say 'the candidate', not he or she.",
        ),
        inferred=(
            "About a third of CVs carry a date of birth; the redaction step seems to miss those written in words.",
        ),
    ),
    Topic(
        name="letters",
        sayer=Sayer.RECRUITER,
        agents=("agent:screening",),
        said=(
            "Answer every application within five working days, even when there is nothing to say yet.",
            "After an interview, a no is said by phone.",
            "Write dates as '14 November', never as 14/11.",
            "Job adverts name the salary band.",
            "First mail to a candidate in the language of the application, with English below.",
        ),
        inferred=(
            "Subject lines with role and client seem to be opened more often than those with our name only.",
            "Messages over 150 words tend to get partial answers; put the question first.",
        ),
    ),
    Topic(
        name="sourcing",
        sayer=Sayer.RECRUITER,
        agents=("agent:sourcing",),
        said=(
            "No direct approach to staff of a client, whatever the role.",
            "Consent for the talent pool is asked for again after twelve months.",
            "Referral bonus is EUR 1,500, half of it after the probation period.",
            "At most three messages to somebody who has not answered.",
        ),
        inferred=(
            "Regional boards seem to bring more complete applications than the large portals, over one quarter.",
            "Most applications for night-shift roles arrive on Sundays after 18:00.",
        ),
    ),
    Topic(
        name="joining",
        sayer=Sayer.RECRUITER,
        agents=("agent:onboarding",),
        said=(
            "Laptops need ten working days; order on the day the contract is signed.",
            "Accounts carry the name a person uses; the contract name stays in payroll.",
            "First-day mails go out five working days before the start.",
            "Payroll closes on the 18th; later starters are paid with the next run.",
        ),
        inferred=(
            "Badge photos in HEIC seem to fail; ask for JPEG.",
            "Starts on a Monday take one IT ticket more on average than starts on a Wednesday.",
            "Deliveries to Cork seem to need three days more than the supplier says.",
        ),
    ),
    Topic(
        name="billing",
        sayer=Sayer.RECRUITER,
        agents=("agent:client-notes",),
        said=(
            "Invoices from agencies need the requisition number, or finance returns them.",
            "Clients are billed on the start date, not on signature.",
            "The replacement guarantee is three months for permanent roles.",
        ),
    ),
)

JOBS = (
    Topic(
        name="needs",
        stage=0,
        sayer=Sayer.INTERVIEWER,
        agents=("agent:job-intake",),
        source="note",
        said=(
            "Must have worked with {skill}; {skill2} can be learned on the job.",
            "{client} needs {skill} from day one and will train {skill2}.",
            "Five years of experience are asked for; three are enough if most of it was {skill}.",
            "A degree is not required for this role, whatever the old advert says.",
            "English is the working language; no other language is needed.",
            "Needs daily work with {skill}; a course alone is not enough.",
        ),
        inferred=(
            "The intake call puts {skill} first and {skill2} fourth; the advert lists them the other way round.",
            "Requirements seem longer than the work needs: {skill2} was not mentioned in the last two debriefs.",
            "All shortlisted profiles name {skill}, and about half name {skill2}.",
        ),
    ),
    Topic(
        name="rounds",
        stage=0.5,
        sayer=Sayer.INTERVIEWER,
        agents=("agent:job-intake", "agent:feedback-summary"),
        source="note",
        said=(
            "Panel is two people from the team and one from another department.",
            "The {exercise} comes second, after the first call, and takes an hour.",
            "The hiring manager joins only the last round.",
            "Three rounds at most: call, {exercise}, panel.",
            "No second {exercise} for people who did it within the last twelve months.",
        ),
        inferred=(
            "The {exercise} takes 75 minutes in practice; the invitation says 60.",
            "Rounds two and three seem to ask the same about {skill}; the panel may want to split the questions.",
            "The scoring guide of the {exercise} has no line for {skill2}; panels add one by hand.",
        ),
    ),
    Topic(
        name="pay",
        stage=0.2,
        agents=("agent:job-intake",),
        source="msg",
        said=(
            "Salary band is {low} to {high}; anything above needs the client's finance director.",
            "Budget ends at {high}, bonus included.",
            "Pay starts at {low} and is reviewed after six months.",
            "The band, {low} to {high}, stands in the advert; quote it in the first message.",
            "An offer in the upper half of {low} to {high} needs a reason in writing.",
        ),
        inferred=(
            (
                "Expectations of the last eight applicants lie mostly between {low} and {high}, so the band seems to"
                " fit."
            ),
            "Band in advert and requisition differ by 2,000; the requisition says {low} to {high}.",
        ),
    ),
    Topic(
        name="timeline",
        stage=1,
        lasts=Lasts.BRIEF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Shortlist is due on {wd:8}, four names at most.",
            "{client} would like somebody in place by {d:75}.",
            "Position is paused until the budget meeting on {wd:16}.",
            "The advert runs until {d:20} and is then taken down.",
            "First interviews in the week of {week:10}, panel in the week of {week:17}.",
        ),
        inferred=(
            "At the present pace the shortlist would be complete about {d:12}.",
            "Interview slots for this role are full until {d:9}.",
            "From application to first call it took {one_of:four|six|seven} working days for the last five people.",
        ),
    ),
    Topic(
        name="place",
        stage=0.4,
        agents=("agent:job-intake", "agent:screening"),
        source="msg",
        said=(
            "Based in {job_city}, two days a week on site; fully remote is not possible.",
            "The work can be done from anywhere in {country}, with one day a month in {job_city}.",
            "Shift work is not part of this role.",
            "About 15 % travel, mostly between the sites of {client}.",
            "Starts in {job_city}; a move to another site is not planned.",
        ),
        inferred=(
            "Most questions from applicants concern office days in {job_city}; the advert does not name them.",
            "The advert says hybrid, the requisition says on site; ask {client} which one holds.",
        ),
    ),
    Topic(
        name="advert",
        stage=0.8,
        agents=("agent:sourcing",),
        source="msg",
        said=(
            "The advert was rewritten on {d:-3}: shorter, with the band, without superlatives.",
            "Use the title {job} in every message; the internal title is not public.",
            "Replaces somebody who moved to another team; the handover lasts four weeks.",
            "A second post of the same kind may open in {month:80}.",
            "There are two internal applicants; they go through the same steps.",
        ),
        inferred=(
            (
                "Applications rose after the advert named the band: {one_of:nine|eleven|fourteen} in the week of"
                " {week:-7}."
            ),
            "The advert asks for a 'native speaker', which the style guide avoids; a rewrite is in the drafts.",
            "The requisition names an old cost centre; finance may return it.",
        ),
    ),
)

CLIENTS = (
    Topic(
        name="shortlists",
        agents=("agent:client-notes",),
        source="msg",
        said=(
            "Wants CVs as PDF, with photo, age and address removed.",
            "Shortlists go in a table: name, notice period, expectation, one line on the work done.",
            "Reads CVs in English only.",
            "At most four people on a shortlist, each with reasons.",
        ),
        inferred=(
            "Seems to prefer CVs of two pages; longer ones came back with questions.",
            "Sent back three of five CVs because dates had no months; add them.",
        ),
    ),
    Topic(
        name="interviews",
        sayer=Sayer.ANYBODY,
        agents=("agent:interview-notes",),
        source="note",
        said=(
            "Interviews on site in {client_city}; only the first call may be by video.",
            "Runs its own technical interview; we do the first call.",
            "Interviewers there need the CV two working days ahead.",
            "Wants feedback forms in its own portal, not by mail.",
        ),
        inferred=(
            "The portal seems to log candidates out after 15 minutes; say so in the invitation.",
            "Interviews there run over by about ten minutes; leave room before the next.",
        ),
    ),
    Topic(
        name="decisions",
        agents=("agent:feedback-summary",),
        source="call",
        said=(
            "Decisions are taken on Thursdays; send everything by Wednesday noon.",
            "Two signatures are needed for offers above {one_of:75,000|80,000|90,000} a year.",
            "HR and the department decide together, neither alone.",
        ),
        inferred=(
            "Usually decides within six working days of the panel.",
            "Answers came soonest when the shortlist named the next free panel date.",
        ),
    ),
    Topic(
        name="contracts",
        lasts=Lasts.STANDING,
        agents=("agent:offer",),
        source="msg",
        said=(
            "Contracts are in two columns, local language and English.",
            "Has its own contract template since {my:-60}; ours is no longer used there.",
            "Standard week is {one_of:37|37.5|38|40} hours; overtime is taken as time off.",
            "Thirty days of leave for everybody, without exceptions.",
        ),
        inferred=("The last two drafts lacked the place of work; check paragraph 2.",),
    ),
    Topic(
        name="invoices",
        agents=("agent:client-notes",),
        source="msg",
        said=(
            "Fee is {one_of:18|20|22} % of annual pay, billed in two parts.",
            "Purchase order first, invoice second.",
            "Invoices go to the shared mailbox, never to a person.",
        ),
        inferred=("Invoices without a purchase order seem to wait about three weeks.",),
    ),
    Topic(
        name="habits",
        lasts=Lasts.BRIEF,
        agents=("agent:client-notes",),
        source="call",
        said=(
            "Office closed from {d:25} to {d:32}; no decisions in that time.",
            "Asks us not to advertise under its name until the new site is announced on {d:30}.",
            "No more than one open role per team until {month:60}.",
            "Wants a call every second {one_of:Monday|Tuesday|Wednesday} at 9:00 about the open roles.",
        ),
        inferred=(
            "One of our templates misspells the name; '{client}' is the right form.",
            "Candidates ask about the merger in the news; {client} prefers to answer that itself.",
        ),
    ),
)

TEAMS = (
    Topic(
        name="meeting",
        sayer=Sayer.ANYBODY,
        agents=("agent:scheduling",),
        said=(
            (
                "Meets on {one_of:Mondays at 9:15|Tuesdays at 9:30|Wednesdays at 16:00} for twenty minutes, without"
                " slides."
            ),
            "The daily update is written, in the channel, by 9:30.",
            "Every second Thursday one closed role is looked at together.",
        ),
        inferred=("The meeting of {wd:4} clashes with two panels.",),
    ),
    Topic(
        name="capacity",
        lasts=Lasts.BRIEF,
        agents=("agent:scheduling",),
        source="msg",
        said=(
            "Has room for two more roles until {d:20}.",
            "One person short until {d:35}; expect two days more for everything.",
        ),
        inferred=(
            "Open tasks per person seem highest here this month: nine against an average of six.",
            "Calendar has free half days only from {wd:6}.",
        ),
    ),
    Topic(
        name="handover",
        agents=("agent:feedback-summary",),
        source="note",
        said=(
            "Hands over at 16:00 with a note in the file, not by chat.",
            "Takes a role only with a signed requisition.",
            "A role with an incomplete intake form goes back to whoever opened it.",
        ),
        inferred=("Handovers without a note led to a second call to the candidate in three cases.",),
    ),
    Topic(
        name="tools",
        agents=("agent:screening",),
        said=(
            "Uses the shared template library; local copies are deleted each quarter.",
            "Works in the ATS only; spreadsheets are exports for reading.",
            "Drafts by agents are marked 'draft' until somebody has read them.",
        ),
        inferred=("Two templates with the same title are in use; the older one has no privacy notice.",),
    ),
    Topic(
        name="promises",
        lasts=Lasts.STANDING,
        agents=("agent:feedback-summary",),
        said=(
            "Aims for a first answer within three working days.",
            "Two people see every message that says no.",
            "Reviews its closed roles once a quarter, next on {wd:22}.",
            "Answers the phone from 9:00 to 17:00, Fridays to 15:00.",
        ),
        inferred=(
            "Median time to a first answer was two working days over the last four weeks.",
            "Most reopened tasks come from missing attachments.",
        ),
    ),
)

ABOUT_WORK = MappingProxyType({"job": JOBS, "client": CLIENTS, "team": TEAMS})
