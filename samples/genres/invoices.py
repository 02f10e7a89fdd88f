"""Invoices as plain text: lines, sums, terms; the sums are right."""

ITEMS = {
    "freight": ["Pallet, Northmere to Aldport", "Pallet, Aldport to Wexholt", "Tail-lift delivery", "Waiting at the ramp, per half hour", "Return of empty cages", "Night surcharge", "Customs papers, per consignment", "Insurance, per mille of value"],
    "engineering": ["Survey of the pump house", "Drawing, sheet A1", "Fitter, hours", "Fitter, hours after 18:00", "Bearing 6308, sealed", "Shaft seal, 45 mm", "Travel, kilometres", "Disposal of oil, litres", "Alignment by laser", "Report of vibration"],
    "catering": ["Lunch, vegetarian", "Lunch, with fish", "Coffee, urn of 10 litres", "Service staff, hours", "Hire of crockery, per place", "Cake, tray of 24", "Delivery", "Cleaning of the hall"],
    "translation": ["Translation German to English, lines", "Translation French to English, lines", "Second reader, hours", "Certified copy", "Layout, pages", "Rush surcharge, lines"],
    "software": ["Licence, named user, month", "Support, second line, hours", "Migration of records, thousand", "Training, half day", "Test system, month", "Backup store, 100 GB and month"],
    "print": ["Brochure, 24 pages, hundred", "Poster A2", "Business cards, box of 250", "Folding and creasing, hundred", "Proof, calibrated", "Courier in town", "Paper, recycled 120 g, ream"],
    "cleaning": ["Offices, weekly, square metres", "Windows outside, panes", "Stairwell, floors", "Floor wax, litres", "Bins, emptied", "Emergency call on a Sunday"],
}

TERMS = [
    "Payable within {days} days without deduction. After that day we charge interest as the general terms say.",
    "Please quote the invoice number when you pay; payments without it wait until somebody has time to look for them.",
    "Goods remain ours until they are paid for. Complaints about the delivery reach us in time within eight days.",
    "Hours are charged by the quarter hour, from the gate and back. Time sheets signed by your foreman are enclosed.",
    "This invoice covers the whole order; nothing further will be charged for it.",
    "Part of the order is still outstanding and will be invoiced when it has been delivered, at the same prices.",
    "The prices of the frame agreement apply. Where a line shows another price, it was agreed on the telephone with your buyer and is noted in our file.",
]


def write(voice, kind, sender, recipient, lines, **facts):
    del facts
    number = f"2026-{voice.number(1000, 9800)}"
    voice.facts["days"] = voice.pick(["14", "21", "30"])
    out = [
        "INVOICE", "",
        f"Number        {number}",
        f"Date          {voice.date(2026)}",
        f"From          {sender}",
        f"To            {recipient}",
        f"Your order    {voice.pick('CDPQ')}{voice.number(400, 990)} of {voice.date(2026)}",
        f"Customer no.  {voice.number(20000, 79999)}", "",
        f"{'Pos.':<5}{'Item':<54}{'Qty':>6}{'Price':>10}{'Sum':>12}",
        "-" * 87,
    ]
    net = 0
    prices = {}
    for position in range(1, lines + 1):
        item = voice.draw(ITEMS[kind])
        quantity = voice.number(1, 36)
        cents = prices.setdefault(item, voice.number(180, 18900))
        total = quantity * cents
        net += total
        note = "" if position <= len(ITEMS[kind]) else f" ({voice.pick(['second', 'later'])} delivery)"
        out.append(f"{position:<5}{item + note:<54}{quantity:>6}{cents / 100:>10,.2f}{total / 100:>12,.2f}")
    rate = voice.pick([19, 20, 21])
    tax = (net * rate + 50) // 100
    out += [
        "-" * 87,
        f"{'Net':<65}{net / 100:>22,.2f}",
        f"{f'Tax {rate} %':<65}{tax / 100:>22,.2f}",
        f"{'Total, EUR':<65}{(net + tax) / 100:>22,.2f}", "",
    ]
    for _ in range(voice.number(2, 4)):
        out.append(voice.say(voice.draw(TERMS)))
    out += ["", f"Questions: {voice.people(1)[0]}, accounts@example.com, extension {voice.number(100, 499)}"]
    return "\n".join(out) + "\n"
