"""Abstracts, and one longer working paper: made-up studies with figures that agree with each other."""

from .core import Page

TOPICS = {
    "tides": {
        "title": "Tidal turbines under partial load: what two winters of strain gauges say about blade fatigue",
        "background": "Blades of small tidal turbines are designed for the load at full flow, although they spend most of their life below it. Whether the many small cycles near slack water matter for fatigue has been argued from models alone.",
        "method": "We fitted strain gauges to <2-4> blades of a turbine of <80-140> kW in the {place} and recorded them at <50-200> Hz over <560-720> days, together with flow, yaw and temperature. Cycles were counted by the rainflow method and weighted with the material's measured curve.",
        "result": "Cycles below a fifth of the rated flow made up <61-74> per cent of all cycles but only <3-6> per cent of the damage. A third of the damage fell within <9-14> storms, during which the turbine was braked for less than half of the time that the manual asks for.",
        "limits": "One site and one blade material were studied; gauges on the trailing edge failed after the first winter, so that twisting loads are known for half of the period only.",
        "meaning": "Operators gain more life from braking earlier in storms than from gentler starts. The present inspection interval could be doubled at this site without added risk.",
    },
    "soil": {
        "title": "Cover crops and earthworm counts on heavy clay: a six-year comparison of forty fields",
        "background": "Cover crops are paid for on the promise of better soil. On heavy clay the evidence comes mostly from plots of a few square metres, worked by hand, which tells a farmer with a tractor rather little.",
        "method": "Forty fields on <11-17> farms around {place} were paired by soil, slope and history; one of each pair was sown with a mixture of rye and vetch each autumn. Worms were counted twice a year in <6-10> pits a field, and the force needed to pull a plough was measured on the way.",
        "result": "After six years the sown fields held <1-2>.<1-9> times as many worms, and the plough needed <8-15> per cent less force. Yield did not differ in wet years; in the two dry ones it was higher by <4-9> per cent.",
        "limits": "Farmers chose which field of a pair was sown, and some chose the better one; removing those pairs weakens the yield effect but not the other two.",
        "meaning": "On clay the gain is in the work and in dry years. A subsidy by hectare pays for it where it is needed least.",
    },
    "sleep": {
        "title": "Rotating shifts announced late: sleep, errors and sick leave in three dispatch rooms",
        "background": "Shift work is hard on sleep, and the direction and speed of rotation have been studied at length. How early a roster is announced has not, although those who live by it name it first.",
        "method": "In three dispatch rooms with <120-190> staff, rosters were announced either <4-6> or <21-28> days ahead, alternating by quarter over two years. Wrist sensors, the rooms' own error logs and payroll records were joined with consent.",
        "result": "With late announcement staff slept <19-34> minutes less on the day before the first shift of a block, errors in that shift rose by <11-18> per cent, and short sick leave by a quarter. Later shifts of the block did not differ.",
        "limits": "The rooms knew which scheme was in force. Those who left during the study, <9-14> in all, are counted up to their last shift.",
        "meaning": "Announcing a roster costs nothing. Three weeks seem to suffice; the effect of still longer notice is open.",
    },
    "ocr": {
        "title": "How much of a faded ledger can be read: machine transcription of harbour books, 1871 to 1914",
        "background": "Harbour masters' ledgers record ships, cargoes and weather, often in several hands on one page. Transcription by machine is now cheap, but error rates are quoted for clean pages.",
        "method": "From <210-340> volumes of the archive in {place} we drew <900-1400> pages at random, had each typed twice by people, and compared <3-5> transcription systems with the agreed text, by column and by degree of fading.",
        "result": "The best system read <93-97> per cent of the letters on clean pages and <58-71> on the worst tenth. Numbers fared worse than names throughout: one tonnage in <9-14> was wrong, mostly by a digit lost at the fold.",
        "limits": "Our typists disagreed on <2-4> per cent of the letters themselves, which bounds what can be measured. The systems change every few months.",
        "meaning": "Names can be indexed without further reading; sums must be checked against the page totals, which the clerks wrote down and which find most errors for nothing.",
    },
    "queues": {
        "title": "Telling callers their turn: appointments against retries at a municipal help line",
        "background": "A help line that is full commonly asks callers to try again later. Those who try most often are served first, and the line is busy with attempts. An appointment costs one call and promises a time.",
        "method": "Over <16-26> weeks a help line in {place} either refused callers when all desks were taken or gave them a time computed from the length of the queue; the scheme changed each Monday by lot.",
        "result": "Calls per answered question fell from <4-6>.<1-9> to 1.<2-4>. The median wait did not change, which nobody had promised; its ninety-fifth percentile fell by <52-68> per cent, and callers above seventy were answered as fast as the rest for the first time.",
        "limits": "About <6-11> per cent missed their appointment. The scheme leaves such a slot empty for a minute, which in the busiest hour cost two answers.",
        "meaning": "The capacity was there all along; it had been spent on refusals. We suggest overbooking by the measured share of missed turns.",
    },
    "bakery": {
        "title": "Waste heat from bakery ovens in a small town's heating network: a year of measurements",
        "background": "Ovens of craft bakeries run when others sleep, and their heat leaves by the chimney. Heating networks need it most at that very hour, but the sums per bakery are thought too small to matter.",
        "method": "Exchangers were fitted in <5-8> bakeries of {place} and their flow and temperature logged by the minute for a year. Costs are those that were paid, including two exchangers that clogged with flour dust and had to be replaced.",
        "result": "The bakeries together gave <310-460> MWh, enough for <28-41> flats, at <4-6> cents a kilowatt hour. Three quarters came between two and six in the morning, when it replaced oil.",
        "limits": "The town has an old network that runs at a low temperature; few others do. Labour by the town's own fitters is counted at cost.",
        "meaning": "Small sources are worth connecting where the pipe passes the door anyway. Filters against flour should be part of the first installation, not of the second.",
    },
}

DEEPER = [
    ("Why the question is still open", "{background} We looked through <34-58> earlier reports and found <5-9> that measured anything in the field; of these, only two ran for longer than a season. The rest reason from first principles, which is honourable, but the principles do not agree."),
    ("The site", "Work took place around {place}, chosen because [its records reach back far enough|the people who keep them were willing to share|access is possible in all weathers]. The region is neither typical nor odd: [rainfall, wages and prices|its size, age and income] lie within the middle half of the country's."),
    ("What we measured", "{method} Instruments were compared with a reference every <4-8> weeks, and readings between a failed comparison and the last good one were thrown away, <2-5> per cent of the whole. The raw files, the comparisons and the list of what was thrown away are kept together."),
    ("What we had expected", "Before the first reading we wrote down what we expected, and sealed it with the [university's archivist|town clerk]. We were right about the direction and wrong about the size by a factor of <2-3>. One of us had expected no effect at all and has asked for that to be mentioned."),
    ("Findings", "{result} The effect appears in each of the [periods|groups] taken alone, though in the smallest it could be chance. Leaving out any single [site|month|participant] changes the main figure by less than <6-11> per cent of itself."),
    ("Three things that might explain it away", "First, those who took part might differ from those who declined; we compared them in <7-12> respects and found a difference in one. Second, the season might have been unusual; the weather service puts it at the <40-65>th percentile. Third, people who are watched behave better; but the effect does not fade, as such goodwill does."),
    ("What it cost", "The study used <1-3> full posts for two years and equipment of {amount}. Half of the equipment is in use elsewhere now. The single largest item was travel, and a second study should rent a room on the spot."),
    ("Limits", "{limits} We would add that the analysis was changed once after the data had been seen, to correct a mistake in the treatment of [leap days|daylight saving|duplicate entries]; results before and after the change are both in the annex."),
    ("What a practitioner may take from it", "{meaning} Anyone who wants to try should begin with one unit for one season and write down the plain counts; the statistics in this paper are needed to convince reviewers, not to see the effect."),
    ("Open questions", "We do not know whether the effect [lasts beyond the period studied|is the same in larger places|depends on the people more than on the method]. A repetition by someone who doubts it would be worth more than a larger one by us, and we shall lend the instruments to anybody who undertakes it."),
    ("Thanks", "To the <20-60> people who let us into their working day, to [two reviewers whose first reports were unkind and right|the night porter who restarted the logger eleven times], and to the [parish|district] council, which paid without asking for a result."),
]


def write(voice, topic, words, place, **facts):
    del facts
    study = TOPICS[topic]
    voice.facts.update(place=place, amount=voice.money(300, 1900))
    study = {key: voice.say(text) for key, text in study.items()}
    page = Page(voice)
    page.raw(f"# {study['title']}")
    page.raw(", ".join(voice.people(voice.number(2, 4))))
    if words > 600:
        page.add("*Working paper <10-80>, {place}. Comments are welcome; please do not quote before the final version.*")
        page.raw("## Summary\n\n" + " ".join([study["background"], study["result"], study["meaning"]]))
        for number, (heading, body) in enumerate(DEEPER, start=1):
            if page.length > words:
                break
            page.raw(f"## {number}. {heading}\n\n" + voice.say(body, **study))
    else:
        if words < 230:
            page.raw(" ".join(study[key] for key in ("background", "method", "result", "meaning")))
        else:
            for key, label in [("background", "Background"), ("method", "Method"), ("result", "Result"), ("limits", "Limits"), ("meaning", "Meaning")]:
                page.raw(f"**{label}.** {study[key]}")
        page.raw(f"Keywords: {topic}, field study, {voice.pick(['measurement', 'costs', 'practice'])}. Received {voice.date(2025)}, accepted {voice.date(2026)}.")
    return page.text()
