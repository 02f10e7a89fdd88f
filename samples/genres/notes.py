"""Product notes: what changed, for whom it matters, what to do."""

from .core import Page

CHANGES = {
    "New": [
        ("Split shipments", "An order may now leave in up to <6-12> parts, each with its own label and its own day. The customer sees one order with several arrivals instead of several orders, which had led to <30-50> questions a week."),
        ("Rules for quiet hours", "Messages that are not urgent wait until the receiver's morning. Urgent is what the sender marks so and what the receiver has not switched off; the list of both can be seen under Settings, Quiet hours."),
        ("Offline counts", "Stock can be counted without a network. Counts are kept on the device for up to <7-21> days and joined when it is back; where two people counted the same bin, both figures are shown and somebody has to choose."),
        ("Two-step approval", "Payments above a sum that you set now need a second person. The second person cannot be the one who entered the supplier's bank details, whatever their rights."),
        ("Calendar view", "Deliveries, shifts and closing days can be laid over each other in one calendar. It opens in under a second with <4-9>,000 entries on an ordinary laptop."),
        ("Reading of meters by photo", "A photo of a meter is read on the device; the picture is sent only if the reading is doubtful. In our test with <800-1900> meters <1-3> in a hundred were doubtful and none was wrong unnoticed."),
        ("Templates with conditions", "Paragraphs of a letter can depend on the address, the sum or the language. A preview shows the letter for ten real receivers before anything is sent."),
    ],
    "Better": [
        ("Search", "Search now finds words with their accents missing and numbers with or without spaces. Results come <3-5> times as fast on large accounts, since the most recent year is looked at first."),
        ("Exports", "Exports of more than <50-200>,000 lines no longer fail at midnight. They run in the background and send a mail with a link that is good for <3-7> days."),
        ("Printing of labels", "Labels come out in the order of the route and not of the alphabet. The old order is still there under Options."),
        ("Accessibility", "Every dialogue can be used with the keyboard alone, and contrast is at least 4.5 to 1 throughout. We thank the <5-9> users who showed us where it was not."),
        ("Time zones", "Times are shown in the zone of the site and no longer of the viewer. Where both differ, a small mark says so."),
        ("Start-up", "The application starts in <2-3> seconds instead of <7-11>, because it no longer loads the tariff tables of countries in which you do not trade."),
        ("Sign-in", "Staying signed in now means staying signed in. Sessions end after <12-24> hours without use, or at once when an administrator says so."),
    ],
    "Mended": [
        ("Rounding on credit notes", "Credit notes with three tax rates could be off by one cent. Those concerned, <14-90> since January, are listed in your mailbox; nothing needs to be paid or repaid."),
        ("Double reminders", "A reminder was sent twice when a customer had two addresses of which one was empty. It is sent once."),
        ("Scanner beeps", "The sound for \"wrong bin\" and the sound for \"done\" could not be told apart by some people, among them our product manager. They now differ in rhythm, not only in pitch."),
        ("Daylight saving", "Shifts over the night of the change were counted an hour short. The hours of last [March|October] have been corrected, and payroll has the list."),
        ("Lost attachments", "Attachments with a name of more than <120-180> letters vanished without a word. They are kept, and the name is shortened in display only."),
        ("Names with apostrophes", "Customers such as O'Hara could not be found by their mail address. Our apologies to all of them."),
    ],
    "Going away": [
        ("Fax", "The fax gateway is switched off on {date}. In the last quarter it sent <9-60> pages, most of them to one number, whose owner we have rung."),
        ("Old interface, version 2", "Version 2 of the interface answers until {date} and has said so in each reply since the spring. <3-8> programmes still use it; their owners get a mail each month with the addresses they call."),
        ("Reports from before 2016", "The old report builder goes. Reports that were opened in the last <12-18> months have been rebuilt in the new one by us; please compare them once."),
    ],
}

KNOWN = [
    "On tablets with a narrow screen the calendar cuts off the last column. Turning the tablet helps; a remedy comes with the next version.",
    "The second approval does not yet work by mail. Those who approve have to sign in.",
    "When a count and a delivery are entered in the same minute, the sum is right but the history shows them in the wrong order.",
    "Photos taken with flash on glass meters are often doubtful. Without flash they are read even in poor light.",
]

UPGRADE = [
    "The new version is there for everybody from {date}, in the evening between eight and ten. Nothing has to be installed. Whoever is in the middle of an entry keeps it.",
    "Installations on your own machines update by the usual package. It needs about <4-15> minutes for a database of ordinary size and can be undone until the first night's backup has run.",
    "If you use the interface, read the section on what is going away first. Everything else can wait until you have time.",
]


def write(voice, product, version, words, **facts):
    voice.facts.update(date=voice.date(2026), product=product)
    page = Page(voice)
    page.raw(f"# {product} {version}")
    page.add(facts.get("intro", "[Most of this version was asked for by you.|This is a quiet version: fewer new things, and more that simply work.|This version took longer than we had said; the reason is under the first heading.] It holds <18-60> changes; those that somebody may notice are listed here."))
    order = list(CHANGES)
    share = [0.45, 0.75, 0.9, 1.0]
    for heading, part in zip(order, share):
        if heading in facts.get("without", ()):
            continue
        pool = CHANGES[heading]
        entries = []
        while (not entries or page.length + sum(len(e.split()) for e in entries) < words * part) and len(entries) < len(pool):
            name, text = voice.draw(pool)
            entries.append(f"- **{name}.** {voice.say(text)}")
        page.raw(f"## {heading}\n\n" + "\n".join(entries))
    page.raw("## Known faults\n\n" + "\n".join(f"- {voice.draw(KNOWN)}" for _ in range(voice.number(1, 3))))
    page.raw("## Upgrading\n\n" + " ".join(voice.say(text) for text in UPGRADE[: 1 if words < 500 else 3]))
    return page.text()
