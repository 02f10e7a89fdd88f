"""Contracts: the clauses of a kind, the clauses that all share, and schedules as long as the document asks for."""

from .core import Page

PARTICULAR = {
    "services": [
        ("Services", "{b} provides to {a} the services that Schedule 1 describes, at the places named there, with people who are [trained|qualified] for them and speak the language of the site. {b} decides how the work is done; what is to be achieved, and by when, is set out in the schedule."),
        ("Standard of work", "{b} works with the care that an experienced firm of its trade would take. Where the schedule names a measurable level, that level is owed and not merely the effort to reach it. A missed level is reported by {b} of its own accord, not later than the <3-7>th working day of the following month."),
        ("Credits for missed levels", "For each level missed in a month, {b} credits <2-5> per cent of that month's charge for the service concerned, up to <15-25> per cent in all. Credits are taken off the next invoice. They are not a penalty and do not replace the right to end this agreement when levels are missed in <3-4> consecutive months."),
        ("Changes", "Either party may ask for a change by describing it on one page. {b} answers within <5-10> working days with its effect on price, dates and levels. Nothing is changed until both have signed; until then the work goes on as agreed, and neither may hold it up in order to hasten the signature."),
        ("People", "The persons named in Schedule 2 stay with the work unless they leave {b}, fall ill or {a} asks for their removal with reasons. A replacement has at least the same experience and overlaps by <5-15> working days, which {b} does not charge."),
        ("Cooperation", "{a} gives access, information and decisions in time. If a decision is late, {b} says so in writing on the same day; dates move by the delay so reported and by no more. Delay that was not reported moves nothing."),
    ],
    "lease": [
        ("Premises", "{a} lets to {b} the hall and yard at {place}, measuring <2100-6400> square metres under roof and <900-3000> in the open, as outlined in red on the plan. The ramp, the weighbridge and the [sprinkler room|transformer] are shared with the neighbouring hall and are not part of the premises."),
        ("Use", "The premises are let for the storage and handling of [packed food|paper and board|machine parts|household goods]. Goods that need a permit, in particular those that burn easily or endanger water, may be brought in only after {a} and the fire authority have agreed in writing."),
        ("Rent", "The rent is {amount} a month, payable in advance on the third working day. It rises once a year by <60-90> per cent of the change in the index of consumer prices; a fall lowers it in the same measure. {a} sends the calculation before the first rent at the new rate falls due."),
        ("Running costs", "{b} pays for what its meters show. Of the costs of the shared parts it bears <22-48> per cent, being its part of the roofed area. {a} settles accounts by the end of June; what is claimed later than <12-18> months after the year's end is lost."),
        ("Condition and repair", "Both have walked through the premises and signed the record with its <60-140> photographs. {a} keeps roof, walls and floor slab in repair; {b} keeps doors, lights, docks and gates, up to <1-3>,500 euros in each case and {amount} in any year. Above these sums {a} pays."),
        ("Floor load", "The slab bears <3-6> tonnes a square metre. Racks of more than <6-9> metres are erected only after a structural engineer has confirmed their feet and fixings. The confirmation is handed to {a} before the first pallet is stored."),
        ("Returning the premises", "At the end {b} clears the premises, closes holes in the slab flush with resin and takes away its signs. Cable trays and the extension to the dock may stay if {a} has not objected <3-6> months before. The keys are counted in the presence of both."),
    ],
    "supply": [
        ("Goods", "{b} supplies and {a} buys the goods listed in Schedule 1, in the quality described there. Samples signed by both are kept at each side's works and decide in a dispute. {b} tells {a} at least <90-180> days before it changes a raw material, a mould or a place of manufacture."),
        ("Forecast and orders", "On the first Monday of each month {a} sends a forecast for <6-12> months. The first <4-8> weeks bind {a}; the following <4-8> bind it as to raw material only. {b} confirms an order within two working days; an order not answered counts as confirmed if it lies within the forecast."),
        ("Delivery", "Delivery is free to {place}, unloaded, between six and two. A delivery is in time when it arrives within <60-120> minutes of the agreed hour. {b} keeps <10-20> working days of finished stock, and shows it on request."),
        ("Inspection", "{a} checks quantity, identity and visible damage on arrival, and reports faults within <5-8> working days. Faults that appear only in use are reported within five days of being found. Neither the signature on the delivery note nor payment waives a claim."),
        ("Prices", "Prices stand for a year. After that they follow the formula of Schedule 3, in which [resin|steel|flour|pulp] weighs <35-55> per cent, energy <10-18> and wages the rest. A change of less than two per cent is not applied but carried forward."),
        ("Recall", "If goods may endanger anybody, whoever learns of it first rings the other at once, day or night, on the numbers of Schedule 4. {a} decides about a recall from the market, {b} about its own stock. Costs follow the cause; until the cause is known each bears its own."),
    ],
    "nda": [
        ("Purpose", "The parties wish to find out whether they can work together on {subject}. For that purpose alone they let each other see information that is not public, and for that purpose alone it may be used."),
        ("What is protected", "Protected is whatever is marked confidential or would plainly be held so by a sensible reader: drawings, prices, names of customers, measurements, source text, and the fact that the parties are talking. Spoken words are protected if they are noted within <10-20> days."),
        ("What is not", "Not protected is what the receiver knew, finds out by itself, learns lawfully from another, or reads in public. The receiver shows which of these is so. A combination of public parts may be protected even though each part is not."),
        ("Care", "The receiver guards the information as it guards its own, and in any case with [locked rooms, named users and records of access|encryption and a list of those who have read it]. It shows it only to people who need it and who are bound in the same way. It answers for them."),
        ("Return", "On request, and at the latest <30-60> days after the talks have ended, the receiver returns or destroys everything and says so in writing. Copies in backups may remain until they are overwritten, but may not be read."),
    ],
    "data": [
        ("Subject and duration", "{b} processes personal data on behalf of {a} in order to [send parcels|pay wages|answer calls], for as long as the main agreement lasts. The kinds of data and of people are listed in Annex 1; other data are not to be entered, and {b} deletes such as it finds after telling {a}."),
        ("Instructions", "{b} acts on documented instructions only. An instruction by telephone is confirmed by mail on the same day. If {b} thinks that an instruction breaks the law, it says so and may wait until {a} has confirmed or changed it in writing."),
        ("Security", "{b} takes the measures of Annex 2: access by name and second factor, encryption at rest and under way, separate stores for each customer, restore tests every <3-6> months. Measures may be replaced by better ones, never by weaker ones, and Annex 2 is kept current."),
        ("Further processors", "Those whom {b} employs are named in Annex 3. A new one is announced <30-45> days before. {a} may object for cause; if no way round is found, {a} may end the service concerned to the day of the change and is repaid what was paid in advance."),
        ("Breaches", "{b} reports a breach within <24-36> hours of noticing it, with what is known then, and adds the rest as it learns it. It does not write to the persons concerned or to the press without {a}, unless the law obliges it."),
        ("Rights of persons", "Requests for access, correction or deletion that reach {b} are passed on within <2-4> working days, unanswered. {b} has tools ready with which {a} can find, correct, export and delete one person's data without help."),
        ("Audit", "{a} may see for itself, once a year and after a breach, with <10-20> days' notice and during office hours. A recent report by an independent auditor takes the place of a visit unless it leaves a question open."),
        ("End", "When the service ends, {b} returns the data in a common format and deletes them within <30-60> days, backups within <90-120>. It confirms in writing. What the law obliges it to keep is locked away and listed."),
    ],
    "licence": [
        ("Grant", "{b} grants {a} the right, not exclusive and limited to the group of companies in Schedule 2, to use the programme named in Schedule 1 for its own business, by up to <120-600> named users. Test and reserve installations are not counted."),
        ("Escrow", "The source text and what is needed to build it lie with a notary. They are renewed with each main version and built once a year by a third party. {a} receives them if {b} ceases trading, or leaves a fault of the first class without remedy for <30-60> days."),
        ("Care", "{b} mends faults, keeps the programme running on supported systems and answers questions on working days from eight to six. A fault of the first class is worked upon within <1-3> hours and until it is mended or made harmless."),
        ("Counting", "{a} counts its users once a year and tells {b} the number. If there were more than paid for, it pays the difference at the normal price from the day of the last count. {b} may have the count checked by an auditor sworn to silence, at its own cost."),
        ("Rights of others", "If someone claims that the programme infringes a right, {b} takes over the defence and its cost, provided that {a} tells it soon and admits nothing. {b} may change the programme so that it no longer infringes, or, if that fails, take it back against repayment of the part not yet written off over <4-6> years."),
    ],
}

SHARED = [
    ("Terms used", "In this agreement a month is a calendar month, a working day is any day from Monday to Friday that is not a holiday at the place of performance, and writing includes mail with a name under it. Headings help to find things and change nothing."),
    ("Order of documents", "If documents disagree, the later amendment goes before the earlier, the agreement before its schedules, and the schedules before offers and minutes. General terms of either party do not apply, even where an order or a confirmation refers to them."),
    ("Payment", "Invoices are sent once a month with a list of what they cover, and fall due <21-45> days after they have arrived. What is in dispute may be held back; what is not, may not. Interest on late sums is <4-9> points above the central bank's rate."),
    ("Taxes", "All sums are net. Each party pays its own taxes; where the law makes one withhold tax for the other, it does so at the lowest rate that the treaty allows and sends the certificate within <30-60> days."),
    ("Duration", "This agreement begins on {date} and lasts <2-5> years. It goes on for a year at a time unless one party gives notice <3-9> months before the end. The notice needs no reasons and no particular form beyond writing."),
    ("Ending for cause", "Each party may end the agreement at once if the other breaks a material duty and does not mend the breach within <14-30> days of being told, stops paying its debts, or is taken over by a competitor of the first. Sums earned until then stay owed."),
    ("Handover at the end", "For <3-6> months after the end, {b} helps {a} or its successor to take over, at the rates of Schedule 3. It hands over records in a form that can be read without its own tools, and leaves people in place for as long as this takes, within reason."),
    ("Liability", "Each party is liable without limit for injury to life and health, for intent and for what it has expressly guaranteed. Otherwise liability is limited to {amount} for each event and to twice that sum for each year. Lost profit is owed only where it could be foreseen when the agreement was signed."),
    ("Insurance", "{b} keeps insurance for liability of at least {amount} for each event, and shows the certificate each January without being asked. It tells {a} when cover is reduced or cancelled, at least <20-40> days before that takes effect."),
    ("Confidentiality", "What one party learns about the other's business stays with those who need it, during the agreement and for <3-7> years after. Advisers bound to silence and authorities that may demand an answer are excepted; the other party is told beforehand where that is lawful."),
    ("Events beyond control", "A party that is prevented by flood, epidemic, strike in other firms, acts of authority or the like is excused for as long as that lasts, if it says so at once and does what it reasonably can. Shortage of staff or money is not such an event. After <60-120> days either may end the agreement."),
    ("Transfer", "Neither party transfers the agreement without the other's consent, which is not refused without a good reason. Transfer to a company of the same group needs only notice; the transferor then remains liable for <12-24> months."),
    ("Subcontractors", "{b} may employ others for parts of the work if it names them <10-20> working days before and they hold to this agreement. It answers for them as for itself. Work at height, with gas and on live parts is not passed on a second time."),
    ("Records and inspection", "{b} keeps records of what it did, when and by whom for <6-10> years. {a} may look at them during working hours after <3-10> days' notice, itself or through an auditor. If a mistake of more than <2-4> per cent to the harm of {a} is found, {b} pays for the inspection."),
    ("Safety and conduct", "On each other's premises people follow the rules of the house, wear what the signs ask for and stop work that seems dangerous. A worker who stops in good faith suffers no disadvantage even if the fear proves wrong. Accidents are reported on the same day."),
    ("Environment", "{b} takes back packaging, separates waste and keeps a yearly account of fuel and power used for this agreement. The parties meet in [March|April|October] to see which of both can be lowered without harm to the work, and share savings equally for two years."),
    ("Fair labour", "{b} pays at least what law and collective agreements demand and can prove it for itself and its subcontractors. Nobody pays to be hired. If {a} is held liable because somebody was paid too little, {b} makes good the sum and the cost of defence."),
    ("Bribery", "Neither party offers or takes anything that a sensible person would not mention in the presence of both managements. Meals and calendars are in order. A breach lets the other party end the agreement at once, after having heard the explanation."),
    ("Names and marks", "Neither party uses the other's name or mark in advertising without consent for the very case. A plain entry in a list of references is allowed once the first year has passed without dispute, and is taken out on request within <5-15> days."),
    ("Notices", "Notices go to the addresses on the first page, to the attention of {pa} for {a} and of {pb} for {b}. A change of address counts from the day after it has been announced. Notices by mail count when they are answered or, failing that, <2-4> working days after a paper copy was posted."),
    ("Steering", "{pa} and {pb} meet every <4-8> weeks, look at levels, dates and money, and write one page about it. What they cannot settle within <10-20> days goes to the managements, who try for as long again before anybody calls a lawyer."),
    ("Disputes", "Disputes that the managements cannot settle are put to a mediator named by the chamber of commerce in Aldport. If that fails within <45-75> days, the courts of Aldport decide. Requests to a court for urgent relief remain possible at any time."),
    ("Law", "The law of the place where {a} has its seat applies, without its rules that point to another law and without the convention on the sale of goods. If that law changes in a way that upsets the balance of the agreement, the parties adjust it."),
    ("Severance", "If a clause is void, the rest stands. In its place comes what the parties would have agreed had they known; a sum or a period that is too large becomes the largest that is lawful. The same holds for a gap."),
    ("Entire agreement", "These pages hold everything that was agreed. There are no side letters. Changes need writing and both signatures; this sentence too can be changed only so. Not insisting on a right once does not give it up."),
    ("Copies", "The agreement is signed in two copies, one for each. Signatures by electronic means with a qualified certificate are as good as ink. If a translation differs, the English text decides."),
]

SITES = [
    ("Northmere depot", "the sorting hall and its <8-24> doors"), ("Aldport quay 4", "the cold store and the crane way"), ("Wexholt yard", "the open area, the fence and the lights"),
    ("Kestrel Bay office", "three floors with <60-140> desks"), ("Foundry Road", "the workshop and the paint line"), ("Stellan Bridge", "the transfer point for vans"),
    ("Highmoor relay", "the mast, the hut and the access road"), ("Old Customs House", "the archive and the reading room"), ("Pender Lock", "the pump house and the gauge"),
    ("Calder Street", "the shop, the counter and the returns room"), ("Lower Tarn", "the bottling line and the laboratory"), ("Ferry Terminal", "the waiting room and the ticket hall"),
    ("Brackwater", "the silo and the weighbridge"), ("Ashdown Park", "the training centre"), ("Marlow Gate", "the spare parts store"), ("East Pier", "the fuel point and the slipway"),
    ("Tannery Row", "the print shop"), ("Upper Wharf", "the container stack"), ("Glasshouse Lane", "the nursery and the boiler"), ("Saltmarsh", "the solar field of <3-9> hectares"),
    ("Signal Hill", "the control room"), ("Weaver's Court", "the canteen and the kitchen"), ("Dunmore Cross", "the vehicle wash"), ("Ropewalk", "the net store"),
    ("Quarry End", "the crusher and its dust filter"), ("Mill Pond", "the fish ladder and the camera"), ("Bishop's Landing", "the passenger pontoon"), ("Orchard Close", "the staff housing, <9-20> units"),
    ("Rookery", "the data room and the two chillers"), ("Linden Square", "the visitor centre"),
]

AT_SITE = [
    "Covered: {what}. {b} is on site on [every working day|Mondays and Thursdays|each weekday from six to two], with <2-7> people of whom one is answerable to {who}. Requests made before ten are dealt with on the same day; others by noon of the next.",
    "Covered: {what}. The level owed is <96-99> per cent of the tasks of the month done in their week. The monthly charge is {money}; work outside the list is charged by the hour after {who} has signed the estimate.",
    "Covered: {what}. Since the site is [listed|under water protection|shared with a neighbour], nothing is drilled, painted or dug without a word from {who}. The yearly shutdown in [July|August|December] is used for whatever makes noise; its dates are fixed <8-16> weeks ahead.",
    "Covered: {what}. {b} answers an alarm within <30-90> minutes at all hours and is on site within <2-5> hours. {who} holds the keys. Spare parts up to {money} are kept in the cabinet by the door and counted each quarter.",
    "Covered: {what}. Taken over in the state recorded on {day}; the <4-18> faults listed there are mended by {b} within the first year and are not counted as missed levels until then. Monthly charge: {money}, from the second year <2-4> per cent less.",
]

PECULIAR = [
    "The gate is too low for vehicles above 3.<20-80> metres, which is why waste leaves in small containers. {b} has seen this and has reckoned with it.",
    "The neighbours have been promised quiet between ten at night and six in the morning; the promise binds {b} too. Exceptions are announced by a note in each letterbox <2-5> days before.",
    "Keys are numbered and signed for. The loss of one is reported within the hour, and {b} pays for new cylinders if it was lost by one of its people.",
    "In winter the way from the gate to the door is clear of snow by [six|half past five]. Salt is not used within <8-20> metres of the trees; grit is, and is swept up in March.",
    "The room next to the stairs stays with {a} and is not entered. Water and power may be used free of charge as long as the meter shows less than <40-140> units a month.",
    "Bats live under the roof. From May to August work there waits, or a person named by the county says what may be done. Time lost in this way extends the dates and costs neither party anything.",
    "Visitors come in groups of up to <15-60> on [Wednesdays|the first Saturday of the month]. On those days ladders and machines are put away by nine, and nobody works above people's heads.",
    "Half of this place is to be sold within <1-3> years. If that happens, the charge is lowered by the part sold, from the first of the month after the sale; {b} has no other claim on that account.",
    "Drawings are out of date since the fire of <1988-2011>. {b} corrects what it comes across, by hand and with a date, and hands over a clean copy at the end of each year.",
    "The lift is inspected by others. {b} reports what it notices, keeps the shaft dry and the lamp above the door in order, and otherwise leaves it alone.",
]

TRADES = ["Cleaner", "Gardener", "Electrician", "Fitter", "Plumber", "Joiner", "Painter", "Roofer", "Refrigeration engineer", "Lift attendant", "Guard", "Guard with dog", "Driver with van", "Driver with lorry", "Foreman", "Draughtsman", "Trainee, second year", "Trainee, third year"]


def write(voice, kind, a, b, words, **facts):
    pa, pb = voice.people(2)
    voice.facts.update(a=a, b=b, pa=pa, pb=pb, date=voice.date(), amount=voice.money(400, 9000), place=facts.get("place", "Northmere"), subject=facts.get("subject", "the matter"))
    page = Page(voice)
    page.raw(f"# {facts['title']}")
    page.raw(f"between\n\n**{a}**, represented by {pa},\n\nand\n\n**{b}**, represented by {pb}.")
    page.add("[Both parties have known each other since <2009-2021>.|The parties have dealt with each other before, on single orders.|The parties were brought together by a tender, in which <4-9> firms took part.] They put on paper here what they have agreed, so that those who come after them need not ask. {subject_line}",
             subject_line=facts.get("subject_line", ""))
    clauses = list(PARTICULAR[kind])
    # As many of the shared clauses as the length asks for, in their usual order; the schedule takes what is left.
    average = 62
    wanted = max(4, (words - page.length - sum(len(body.split()) for _, body in clauses)) // average)
    keep = set(voice.shuffled(range(len(SHARED)))[:wanted])
    clauses += [clause for i, clause in enumerate(SHARED) if i in keep]
    for number, (heading, body) in enumerate(clauses, start=1):
        page.raw(f"## {number}. {heading}\n\n" + voice.say(body))
    if page.length < words - 200:
        page.raw("# Schedule 1: places and levels")
        page.add("The charges below are for a month and hold for the first year. Where a place is closed for more than <10-20> days its charge is reduced in proportion.")
        sites = voice.shuffled(SITES)
        for number, (name, what) in enumerate(sites, start=1):
            if page.length >= words:
                break
            about = voice.say(voice.draw(AT_SITE), what=voice.say(what), who=voice.pick(voice.people(6)), money=voice.money(18, 640), day=voice.date(2025))
            page.raw(f"### 1.{number} {name}\n\n{about} {voice.say(voice.draw(PECULIAR))}")
        if page.length < words:
            page.raw("# Schedule 2: rates for work outside the list")
            rows = [f"| {trade} | {voice.number(38, 118)}.00 | {voice.number(25, 60)} % | {voice.number(50, 100)} % |" for trade in TRADES]
            page.raw("| Trade | EUR an hour | Nights | Sundays |\n|---|---|---|---|\n" + "\n".join(rows))
    page.raw(f"Signed at {voice.pick(['Northmere', 'Aldport', 'Wexholt'])} on {voice.facts['date']}\n\n{pa}, for {a}\n\n{pb}, for {b}")
    return page.text()


def amendment(voice, a, b, **facts):
    """A letter that changes a contract in a few points."""
    pa, pb = voice.people(2)
    voice.facts.update(a=a, b=b, day=voice.date(2024), start=voice.date(2026), money=voice.money(100, 900))
    page = Page(voice)
    page.raw(f"# {facts['title']}")
    page.add("{a} and {b} change their agreement of {day} in the points below. Everything else remains as it stands, and the changes hold from {start}.")
    page.add("1. In clause <3-6> the number \"<20-40>\" is replaced by \"<41-60>\". The words \"in the first year\" are struck out.")
    page.add("2. The monthly charge for [Pender Lock|Brackwater|East Pier] becomes {money}. In return {b} takes over the [clearing of snow|care of the two pumps|weekly reading of the gauges], which {a} has so far done itself.")
    page.add("3. Clause <7-11> receives a new last sentence: \"If a visit falls on a holiday, it is made up for within the same week, and the hours are counted as if it had not been moved.\"")
    page.add("4. The person to whom notices are addressed at {b} is from now on " + pb + ".")
    page.add("5. What was done since the beginning of the [quarter|month] in expectation of this amendment is taken to have been done under it. Neither party has claims against the other from that time, except for the <2-6> hours that are noted in the minutes of the last meeting.")
    page.raw(f"{pa}, for {a}\n\n{pb}, for {b}")
    return page.text()
