"""Incident reports: what happened minute by minute, why, and what follows from it."""

from .core import Page

KINDS = {
    "outage": {
        "what": ["the booking system", "the scanner network", "the label service", "the payment terminal gateway"],
        "effect": ["<120-900> orders could not be taken and were written down by hand", "<14-40> lorries waited at the gate for up to <2-4> hours", "customers saw an empty page for <35-170> minutes"],
        "cause": ["A certificate had run out. The reminder went to a mailbox that nobody has read since a colleague left in [spring|autumn].", "A disk filled up with copies of the same log line, written <300-900> times a second by a client that did not take no for an answer.", "A change of a time-out from <20-40> seconds to two, meant for the test system, was also applied to the real one, because both read the same file."],
        "steps": ["{who} saw the first alarm and took it for the one that comes every Tuesday.", "The service desk had <6-30> calls in ten minutes; the pattern was clear before the monitoring said anything.", "{who} restarted the first node. It came up, answered for a minute and fell silent again.", "The database showed <200-700> open sessions where there are usually <20-50>.", "A conference was opened. <7-14> people joined, of whom four were needed.", "{who} asked what had changed since yesterday. Nobody knew of anything; the list of changes was empty, wrongly.", "Traffic was turned away with a page that said so, which took the load off and the callers' uncertainty too.", "The second site was considered and rejected: its copy was <15-50> minutes behind.", "{who} found the line in the configuration by comparing it with last week's backup.", "The change was taken back on one node. That node recovered within <1-4> minutes.", "The others followed one by one, with two minutes in between so as not to bring them all in cold.", "The queue of waiting messages began to shrink, at about <80-300> a minute.", "Hand-written orders were brought to the office in a shoe box and typed in by <3-6> people.", "The page was taken away. {who} stayed on the line for another hour.", "All checks were green. Two were found to be green always, and were noted for repair.", "Customers who had asked were told what had happened, in three sentences."],
    },
    "injury": {
        "what": ["a slip on the dock plate of bay <2-9>", "a hand caught at the return roller of line <1-5>", "a fall of cartons from the third level of aisle <4-18>", "a collision of a truck and a hand cart at the blind corner"],
        "effect": ["one employee was hurt at the [wrist|ankle|shoulder] and was away from work for <4-19> days", "nobody was hurt, but for luck and half a metre", "a driver of a carrier was bruised and drove on after treatment, against advice"],
        "cause": ["The floor was wet because the gutter above the gate has leaked since the storm. The leak had been reported <2-4> times, each time to a different office.", "The guard had been taken off to clear a jam and was leaning against the wall. The line can be started without it, which it should not be.", "The mirror at the corner had been turned by the window cleaners. From the driver's seat it showed the ceiling."],
        "steps": ["The shift began with <2-5> people fewer than planned; tours were redistributed by {who}.", "A delivery that was due at eight arrived early and was put into the aisle for want of room.", "{who} passed the place and noticed nothing unusual, which is of interest, since the water must have been there.", "The accident happened. A colleague pressed the stop button within seconds.", "{who}, first-aider of the shift, was there in under <2-4> minutes; the box lacked a large bandage.", "The ambulance was called. It found the wrong gate, since the signs still show the old numbers.", "The area was closed with tape and photographed before anything was moved.", "The family was rung by the shift leader in person.", "The line stood still for <40-150> minutes; two tours left late.", "{who} from the works council arrived and was shown everything.", "The place was dried, and a bucket was put beneath the gutter.", "Work began again, with one person to watch the floor.", "The authority was informed by telephone, and in writing on the following day.", "Those who had seen it were offered a talk; <2-4> accepted."],
    },
    "spoilage": {
        "what": ["the cold store at quay 4", "the chiller of trailer <31-78>", "cell <2-6> of the freezer hall"],
        "effect": ["<3-19> pallets had to be destroyed and <2-8> customers went short", "goods worth {money} were held for two days until the laboratory had cleared them", "the temperature stood above the limit for <50-190> minutes, though no goods were lost"],
        "cause": ["The compressor stopped after a dip in the mains and waited for somebody to press a button. The alarm was sent to a telephone that lay in a drawer, charged and silent.", "The door did not close fully because a strip of the curtain had come off and lay in the rail. The sensor sits at the other end of the room and noticed last.", "After defrosting, the fan turned in the wrong direction: two wires had been exchanged during the service of the day before."],
        "steps": ["The recorder shows the last normal value, minus <18-22> degrees.", "The mains dipped for less than a second; lights flickered in the office across the yard.", "The temperature began to rise by about a degree every <6-14> minutes.", "The first alarm was sent. Nobody received it.", "The night watch walked past and heard that it was quieter than usual, but had no instruction for quiet.", "{who} opened the door for the first delivery and felt that something was wrong before reading the display.", "The refrigeration firm was rung; its technician was <50-95> kilometres away.", "Doors were sealed with film and blankets, which slowed the rise to a third.", "{who} decided to move the most sensitive goods to the neighbour's store, with his leave and <2-4> of his trucks.", "The technician arrived, pressed the button and stayed, since it ought not to be that simple.", "Core temperatures were taken from every <3-6>th pallet, by two people, one reading and one writing.", "The quality manager blocked the lots in the system, so that nobody could send them out by habit.", "The temperature was back at its normal value.", "The veterinary office was told, and came on the next morning with thanks for the early call.", "Customers were rung in the order of their delivery dates."],
    },
    "privacy": {
        "what": ["a list of <300-2400> customers sent to the wrong supplier", "a lost laptop of the field service", "pay slips printed on the printer in the corridor"],
        "effect": ["names and addresses, but no bank details, were seen by <1-6> people who should not have seen them", "we have no sign that anybody looked, and cannot rule it out", "<4-30> colleagues could have read what others earn"],
        "cause": ["The mail programme completed the address after three letters, and the two receivers share those three letters. Attachments are not encrypted by default.", "The laptop was encrypted but not switched off; it lay, sleeping and unlocked for up to ten minutes, on a café table.", "The secure printing was off after the driver had been renewed, and nobody had been told what to look for."],
        "steps": ["{who} sent the message and left for lunch.", "The receiver rang back, friendly and puzzled.", "{who} told the data protection officer within the hour, which is what the training asks for.", "The receiver was asked to delete the message and did so while on the telephone; a written confirmation followed.", "The server's log showed <1-3> downloads of the attachment.", "The passwords of the account were changed and all sessions ended.", "The café was visited. The owner had put the machine behind the counter and had told nobody.", "The printer was emptied and the pages counted: <2-5> were missing, and turned up in the recycling bin.", "A first assessment was written: low risk, but to be reported in case of doubt.", "The authority received the report <9-40> hours after the event, within the limit of seventy-two.", "Those concerned were written to, by name and without the phrase \"out of an abundance of caution\".", "Two of them called. One wanted to know who had been responsible, and was told that the process was."],
    },
}

DEEPER = [
    "Why was it not noticed sooner? The monitoring asks whether the [machine|room|process] is there, not whether it does its work. Between the first sign and the first person who acted lay <18-75> minutes, and in that time four people had seen a part of it without being able to know that it was a part.",
    "Why did the first remedy fail? It was the remedy for the fault that we have most often. That it had helped <5-11> times before made everybody try it a third and a fourth time. The instruction should say when to stop trying.",
    "Why were so many people involved? Since nobody was named as the one who leads, everyone who could help, helped. Twice two people did the same thing; once two people did opposite things. From now on the first who joins leads until relieved, and says so aloud.",
    "Why was the note of the earlier event of no use? It exists, is well written and says in its fourth point what should have been done. The point was assigned to a [team|post] that was dissolved a month later.",
    "What went well? The decision to stop was taken within minutes and by somebody who could not be sure of being thanked for it. Those affected were told the truth early. The hand-over to the next shift took ten minutes and lost nothing.",
    "Where were we lucky? It was a [Tuesday|Sunday] and not the first of the month. The one person who knows the old part was in the building, in order to return a key.",
    "What would have happened without anybody's help? By our estimate the state would have lasted until the morning, with <3-6> times the damage. The automatic protection, on which the risk assessment relies, would not have acted: it had been set to warn only during the commissioning <2-5> years ago.",
    "Is it the same as the event of [last May|the year before last]? In its outward signs yes, in its cause no. We mention it because several people thought so on the day, and looked in the wrong place for <20-40> minutes.",
    "What about those who did it? Each of them acted sensibly on what they knew. This report names people where they did something helpful, and functions where they did not.",
    "What did the plans say? The emergency plan has <30-60> pages and was not opened. The card by the telephone has nine lines and was used. We shall shorten the plan and lengthen the card by two lines.",
]

MEASURES = [
    "Send the alarm to two people and to a loudspeaker, and test it on the first Monday of each month at ten.", "Change the interlock so that the [machine|service] cannot be started in the unsafe state at all.",
    "Give each reported defect one number and one owner, and read out the ten oldest at the weekly meeting.", "Keep test and real settings in separate files with separate rights.",
    "Put up new signs at gates 1 to <5-9>, and send the plan to the rescue service.", "Add the missing step to the hand-over sheet after maintenance: [direction of rotation|door seal|secure print], checked by a second person.",
    "Write down who leads in an incident, and practise it twice a year, once without notice.", "Look for the same weakness at the other <4-12> places and report the number found.",
    "Replace the part that failed, and the <2-6> others of the same age.", "Shorten the emergency plan to what fits on two pages.",
    "Train deputies, so that no task hangs on one person; begin with the three that did on this day.", "Offer those affected a talk after a month, when the first concern of everybody else has passed.",
]

STATEMENTS = [
    "I had just come back from my break. I remember thinking that it was strangely quiet, and then that I had no time to think about it. When {who} shouted I ran without knowing where. I would do the same again, but I would like to know where the switch is.",
    "We have said for months that something of the kind would happen. I do not say this to be right. When you say a thing often enough, people hear the voice and no longer the sentence. Perhaps there should be a place where it is written, with a date next to it.",
    "My part was small. I kept the door closed and told the drivers what I knew, which was little. Most of them were decent about it. One asked every <5-10> minutes; I gave him coffee and he stopped.",
    "I made the change the day before. I had tested it, but in the test there is one and in reality there are <8-40>. I told my manager in the first minute when I understood it. Nobody has reproached me, and I sleep badly all the same.",
    "From the control room it looked harmless: a yellow field among green ones. Yellow is what we see all day. I do not think that anybody could have picked out this yellow from the others. If everything is yellow on an ordinary day then yellow means nothing.",
    "The customer rang me on my own number because the main line was busy. I could tell him what had happened, since {who} had sent round two lines every half hour. He has since written a letter of thanks, which I would not have expected on that day.",
    "I was on call and did not hear the telephone, because it was in my jacket and the jacket was in the car. It is as simple as that. I have asked for a device that wakes the neighbours too.",
    "As an outsider I noticed how calm they were. I have been to places where they look for the culprit while it is still burning. Here somebody wrote the time on a flip chart, and next to it what was being tried. That chart is now the best source we have.",
]


def write(voice, kind, words, **facts):
    it = KINDS[kind]
    people = voice.people(8)
    voice.facts.update(money=voice.money(60, 1800), place=facts.get("place", "Northmere"))
    page = Page(voice)
    page.raw(f"# Incident report 2025-{voice.number(100, 480)}: {facts['title']}")
    page.add("**Place:** {place}  \n**Day:** {day}  \n**Written by:** {author}  \n**State:** [final|final, measures open|second version]", day=voice.date(2025), author=people[0])
    effect, cause = voice.say(voice.pick(it["effect"])), voice.say(voice.pick(it["cause"]))
    page.add("## Summary\n\nThe event concerned {what}. In consequence {effect}. The direct cause is understood and has been removed; of the measures below <2-5> are still open.", what=voice.say(voice.pick(it["what"])), effect=effect)
    first_hour = 1 if kind == "spoilage" else 7
    minute = voice.number(first_hour * 60, (first_hour + 4) * 60)
    lines = []
    steps = it["steps"] if words > 700 else it["steps"][::2]
    for step in steps:
        lines.append(f"- **{minute // 60:02}:{minute % 60:02}** {voice.say(step, who=voice.pick(people).split(' ', 1)[1])}")
        minute += voice.number(2, 26)
    page.raw("## Course of events\n\n" + "\n".join(lines))
    page.raw("## Cause\n\n" + cause)
    count = max(2, min(9, words // 150))
    measures = [f"{n}. {voice.say(voice.draw(MEASURES))} ({voice.pick(people).split(' ', 1)[1]}, by {voice.date(2026)})" for n in range(1, count + 1)]
    tail = sum(len(m.split()) for m in measures)
    if page.length + tail < words:
        page.raw("## Questions that we asked ourselves")
        while page.length + tail < words and voice.left(DEEPER) and len(page.parts) < 30:
            page.add(voice.draw(DEEPER))
            if voice.left(DEEPER) == 0:
                break
    page.raw("## Measures\n\n" + "\n".join(measures))
    if page.length < words:
        page.raw("## Annex: what people told us")
        for i in range(len(STATEMENTS)):
            if page.length >= words:
                break
            page.raw(f"**{['Employee A', 'Employee B', 'A shift leader', 'An engineer', 'Control room', 'Sales', 'On call', 'A visitor'][i]}:** " + voice.say(STATEMENTS[i], who=people[i]))
    if page.length < words:
        page.raw("## Annex: readings\n\n| Time | Reading | Limit | Remark |\n|---|---|---|---|")
        rows = []
        minute = voice.number(0, 60)
        while page.length + len(rows) * 8 < words:
            value = voice.number(10, 95)
            rows.append(f"| {minute // 60 % 24:02}:{minute % 60:02} | {value}.{voice.number(0, 9)} | 80.0 | {'above the limit' if value >= 80 else voice.pick(['normal', 'normal', 'rising', 'read by hand', 'sensor cleaned'])} |")
            minute += voice.number(3, 9)
        page.parts[-1] += "\n" + "\n".join(rows)
    return page.text()
