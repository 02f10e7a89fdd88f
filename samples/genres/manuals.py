"""Manuals: a plant and its parts, each with purpose, checks, faults and figures."""

from .core import Page

PLANTS = {
    "pump house": ["inlet screen", "lifting pump 1", "lifting pump 2", "standby pump", "non-return flaps", "gate valve on the rising main", "float switches", "ultrasonic level gauge", "control cabinet", "emergency generator", "fuel tank of the generator", "air vessel", "surge relief valve", "flow meter", "ventilation", "gas warning device", "sump ladder and platform", "travelling crane", "cable entries", "telemetry", "frost heating", "drain of the dry pit", "lighting", "entrance hatch", "penstock at the outlet", "sampling point"],
    "bottling line": ["depalletiser", "bottle washer", "empty bottle inspector", "rinser", "filler carousel", "crown closer", "level inspector", "pasteuriser", "labeller", "date coder", "case packer", "palletiser", "conveyor bends", "accumulation table", "lubrication of the chains", "clean-in-place skid", "caustic store", "compressed air", "carbon dioxide supply", "glass trap", "guard doors", "main operator panel", "waste water pit", "steam reducing station"],
    "sorting hall": ["infeed belt", "scanner tunnel", "dimension scale", "tilt trays", "chutes", "recirculation loop", "jam detectors", "emergency stops", "dock levellers", "roller doors", "battery chargers", "label printers", "hand scanners", "sorter control", "smoke extraction", "sprinkler test valve", "heating curtains", "bag openers", "weigh bridge", "returns desk", "network cabinets", "floor marking"],
    "glasshouse boiler": ["wood chip store", "walking floor", "feed auger", "burner grate", "flue gas fan", "cyclone", "heat exchanger tubes", "buffer tank", "circulation pumps", "mixing valves", "expansion vessel", "safety valve", "ash screw", "ash container", "oxygen probe", "fire extinguishing line of the auger", "control unit", "peak load burner", "water treatment", "chimney", "heat meter"],
}

PURPOSE = [
    "The {part} [keeps the plant in step|takes up what the stage before it delivers unevenly|is the part that stops first when something is wrong, and is meant to]. It was [fitted|renewed] in <2009-2023>; the maker's drawing has the number <1000-9800>/<10-99> and hangs in the door of the cabinet.",
    "Of all parts the {part} gives the least trouble as long as it is clean, and the most when it is not. Two spare sets lie in the store, shelf <2-19>. A third is with the fitter.",
    "Most calls at night concern the {part}. In <7-8> cases out of ten the cause is one of the first two in the list of faults, and can be dealt with without a fitter.",
    "The {part} works unseen, and is therefore forgotten. The figures below were taken when it was new; compare with them, not with those of last month.",
    "What the {part} does can be read off its gauge: green is normal, amber means that it will need attention this week, red that somebody has looked away for too long.",
]

CHECKS = [
    "Before every shift: look, listen, touch. The {part} should be dry outside, sound even and be no warmer than your hand can bear for <5-10> seconds.",
    "Each week: clean it with a brush and lukewarm water, never with the pressure washer. Wipe the sensor with a cloth free of lint. Enter the reading in the book, even when it is the same as before.",
    "Each month: tighten the <4-12> bolts crosswise to <18-85> newton metres. If one of them turns by more than an eighth, mark it and check again after a day.",
    "Every <3-6> months: change the [oil|filter mat|belt|seal], of which <1-6> [litres|pieces] are needed. Use only what the list at the end names. Old and new kinds must not be mixed.",
    "Once a year, with the plant at rest: take off the cover, measure the wear at <3-5> points and write it on the sheet. Below <4-9> millimetres the part is replaced, not observed.",
    "After every standstill of more than <3-10> days: turn it by hand once before it is switched on. It must move without a hitch.",
]

FAULTS = [
    "*It does not start.* See whether the isolator is on and the emergency stops are pulled out; someone has often pressed one with an elbow. Then the fuse, then the contactor. Do not press the start button more than <2-4> times.",
    "*It starts and stops again after <10-50> seconds.* The protection has acted. Wait for <5-15> minutes, look for what is blocking it, reset it once. If it acts again, leave it off and call the fitter.",
    "*It is louder than usual.* A hum points to a loose cover, a knock to a bearing, a hiss to air where none should be. With a knock switch off at once; with the others there is time until the end of the shift.",
    "*The reading jumps.* As a rule it is moisture in the plug. Dry it, put on grease, close the cap until it clicks. If it still jumps, the cable has been pinched somewhere within the last <2-5> metres.",
    "*It drips.* A drop in a minute is in order at the packing, since it cools. A drop in a second is not. Never tighten the gland by more than a quarter turn at a time.",
    "*The lamp is amber although everything runs.* The counter of operating hours has passed <400-2500>. Do the yearly check, then set the counter back with the key.",
    "*It smells.* Of rubber: the belt slips. Of varnish: the winding is too hot; switch off, leave the cover on, wait. Of gas: leave, close the door, ring from outside.",
    "*The control shows a fault number.* Write it down before you acknowledge it. Numbers up to <30-60> are described on the card; with all others ring the help line and read out the number and the hour.",
]

FIGURES = [
    "| Current at full load | <4-38> A |", "| Pressure, normal | <1-6>.<0-9> bar |", "| Speed | <480-2900> a minute |", "| Temperature of the housing | up to <45-75> °C |", "| Running hours a year | about <900-6500> |",
    "| Mass | <12-940> kg |", "| Clearance | 0.<10-60> mm |", "| Filling | <1-90> litres |", "| Delay before the alarm | <5-60> s |",
]

WARN = [
    "> **Danger.** Lock the isolator with your own padlock, and keep the key in your pocket. The other shift's padlock is not yours.",
    "> **Caution.** Parts may be hot for up to <20-60> minutes after they have come to rest.",
    "> **Note.** Work on this part needs two people, of whom one stays outside and does nothing else.",
    "> **Note.** Whoever opens the cover enters it in the book, with the time. That is how we found the missing spanner.",
]

FRONT = [
    ("For whom this is written", "For those who run and look after the {plant}, on every shift, and for those who come in to help. You need no training in engineering for the daily checks. Work that does need it is marked, and is left to those who have it, even when they are far away and it is raining."),
    ("How to read it", "Each chapter deals with one part and can be read alone, standing up. It says what the part is for, what is to be checked and how often, what can go wrong, and the figures by which you recognise the normal state. What is the same for all parts is in this first chapter and nowhere else."),
    ("Before you begin", "Wear shoes with caps, glasses, and no rings. Tell somebody where you are going and when you will be back. Know where the nearest emergency stop is; if you have to look for it, look for it now. Nobody is ever blamed here for having stopped the plant."),
    ("Starting up", "Go through from the outlet to the inlet, so that nothing arrives where it cannot leave. Give each part <20-60> seconds before you go on to the next. Watch the ammeter and not the clock. If anything is not as described, stop, go back by one step and read the chapter about that part."),
    ("Shutting down", "Go through from the inlet to the outlet. Let what is under way run out, which takes <4-12> minutes. Relieve the pressure, close the valves by hand and feel that they are closed. Lights stay on in winter, because the lamps keep the cabinet dry."),
]


def write(voice, plant, words, **facts):
    voice.facts.update(plant=plant)
    page = Page(voice)
    page.raw(f"# {facts['title']}")
    page.add("Edition <3-12>, {day}. It replaces all earlier editions; please do destroy them.", day=voice.date(2026))
    page.raw("## 1. General")
    for heading, text in FRONT:
        page.raw(f"### {heading}\n\n" + voice.say(text))
    number = 1
    for part in PLANTS[plant]:
        if page.length >= words - 60:
            break
        number += 1
        page.raw(f"## {number}. {part[0].upper()}{part[1:]}")
        page.add(voice.draw(PURPOSE), part=part)
        if voice.number(1, 3) == 1:
            page.add(voice.draw(WARN))
        page.raw("### Checks\n\n" + "\n".join("- " + voice.say(check, part=part) for check in voice.shuffled(CHECKS)[: voice.number(2, 4)]))
        page.raw("### Faults\n\n" + "\n\n".join(voice.say(fault) for fault in voice.shuffled(FAULTS)[: voice.number(1, 3)]))
        page.raw("### Normal figures\n\n| What | Value |\n|---|---|\n" + "\n".join(voice.say(figure) for figure in voice.shuffled(FIGURES)[: voice.number(2, 4)]))
    page.raw(f"## {number + 1}. Whom to ring")
    page.add("By day {first}, extension <200-299>; by night {second}, whose number is on the card by the door. The fitter is {third}. If nobody answers, stop the plant. A plant at rest is a nuisance, no more.", **dict(zip(("first", "second", "third"), voice.people(3))))
    return page.text()
