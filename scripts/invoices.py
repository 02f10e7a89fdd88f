#!/usr/bin/env python3
"""Makes invoices with what is true of them, the same ones every time.

    scripts/invoices.py FOLDER [--count 300] [--rate MODEL=0.2 …] [--invented MODEL=0.2 …]

writes into FOLDER

    in/invoice-0001.md …   in three layouts and two languages
    schema.json            what is asked of each
    checks.json            what each answer must pass: totals, dates, currencies
    truth.jsonl            {"id", "expected"}, as `--truth` reads it
    quotes.jsonl           {"id", "quotes"}: the lines that each field stands in
    simulator.toml         a provider that knows the answers and the lines, and whose models err as often as it is said

A wrong answer of the simulator has one field that is wrong, whichever; customer and number are in no check.
"""

import argparse
import datetime
import json
import pathlib
import random

CUSTOMERS = ["Anna Berg", "Northmere Logistics", "Kestrel Bay Foods", "Lindqvist Instruments", "Pender Lock Water Board", "Werft Halvorsen", "Bäckerei Ömer"]
GOODS = {"en": ["crates", "pump seals", "gauges", "rope", "hours of care"], "de": ["Kisten", "Dichtungen", "Manometer", "Tauwerk", "Stunden Wartung"]}
WORDS = {
    "en": dict(invoice="Invoice", number="Invoice number", date="Date", due="Payable by", customer="Customer", net="Net", vat="VAT", total="Total", thanks="Thank you for your order."),
    "de": dict(invoice="Rechnung", number="Rechnungsnummer", date="Datum", due="Zahlbar bis", customer="Kunde", net="Netto", vat="USt", total="Gesamtbetrag", thanks="Wir danken für Ihren Auftrag."),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "customer": {"type": "string"},
        "date": {"type": "string"},
        "due": {"type": "string"},
        "currency": {"type": "string"},
        "net": {"type": "number"},
        "vat": {"type": "number"},
        "total": {"type": "number"},
    },
    "required": ["number", "customer", "date", "due", "currency", "net", "vat", "total"],
    "additionalProperties": False,
}


def stands(field):
    """Whether a date stands in the document, in either language's form."""
    of = f"answer.{field}"
    return f"({of} in document or ({of}[8:] ~ '.' ~ {of}[5:7] ~ '.' ~ {of}[:4]) in document)"


CHECKS = [
    {"name": "total", "expression": "(answer.net + answer.vat - answer.total)|abs < 0.005"},
    {"name": "dates", "expression": f"answer.date <= answer.due and {stands('date')} and {stands('due')}"},
    {"name": "currency", "expression": "answer.currency|length == 3 and answer.currency in document"},
]


def quoted(text, value):
    """The line with a value, and as many after it as make 12 letters and digits: fewer prove nothing."""
    lines = text.split("\n")
    first = next(place for place, line in enumerate(lines) if value in line)
    ends = (last for last in range(first + 1, len(lines) + 1) if sum(map(str.isalnum, "".join(lines[first:last]))) >= 12)
    return "\n".join(lines[first : next(ends)])


def made(number):
    """An invoice's text, what is true of it, and the lines that say so."""
    chance = random.Random(number)
    language, layout = ("en", "de")[number % 2], number // 2 % 3
    words = WORDS[language]
    date = datetime.date(2026, 1, 5) + datetime.timedelta(days=chance.randrange(320))
    due = date + datetime.timedelta(days=chance.choice([14, 30]))
    lines = [(chance.choice(GOODS[language]), chance.randrange(1, 40), chance.randrange(300, 90_000)) for _ in range(chance.randrange(1, 6))]
    net = sum(count * cents for _, count, cents in lines)
    vat = round(net * chance.choice([7, 19, 20]) / 100)
    true = {
        "number": f"R-2026-{number:04}",
        "customer": chance.choice(CUSTOMERS),
        "date": date.isoformat(),
        "due": due.isoformat(),
        "currency": chance.choice(["EUR", "EUR", "CHF", "GBP"]),
        "net": net / 100,
        "vat": vat / 100,
        "total": (net + vat) / 100,
    }

    def day(iso):
        return iso if language == "en" else ".".join(reversed(iso.split("-")))

    def money(amount):
        text = f"{amount:,.2f}"
        return text if language == "en" else text.translate(str.maketrans(",.", ".,"))

    facts = [("number", true["number"]), ("date", day(true["date"])), ("due", day(true["due"])), ("customer", true["customer"])]
    sums = [(name, f"{money(true[name])} {true['currency']}") for name in ("net", "vat", "total")]
    if layout == 0:
        text = [f"# {words['invoice']}", *(f"{words[name]}: {value}" for name, value in facts)]
        text += [f"{count} {goods}: {money(count * cents / 100)}" for goods, count, cents in lines]
        text += [f"{words[name]}: {value}" for name, value in sums]
    elif layout == 1:
        text = [f"# {words['invoice']} {true['number']}", "| | |\n|---|---|\n" + "\n".join(f"| {words[name]} | {value} |" for name, value in facts[1:])]
        rows = [(f"{count} {goods}", money(count * cents / 100)) for goods, count, cents in lines] + [(words[name], value) for name, value in sums]
        text += ["| | |\n|---|---:|\n" + "\n".join(f"| {what} | {value} |" for what, value in rows)]
    else:
        text = [f"{true['customer']}\n\n{words['invoice']} {true['number']}, {day(true['date'])}"]
        text += ["; ".join(f"{count} {goods} {money(count * cents / 100)}" for goods, count, cents in lines) + "."]
        text += ["; ".join(f"{words[name]} {value}" for name, value in sums) + f". {words['due']} {day(true['due'])}."]
    text = "\n\n".join([*text, words["thanks"]]) + "\n"
    values = dict(facts) | dict(sums)
    values["currency"] = values["total"]
    return text, true, {name: quoted(text, value) for name, value in values.items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--count", type=int, default=300)
    arguments.add_argument("--rate", action="append", default=[], metavar="MODEL=RATE", help="how often a model of the simulator errs")
    arguments.add_argument("--invented", action="append", default=[], metavar="MODEL=RATE", help="how often a model of the simulator makes a quote up")
    given = arguments.parse_args()
    (given.folder / "in").mkdir(parents=True, exist_ok=True)
    known, truth, quotes = [], [], []
    for number in range(1, given.count + 1):
        text, true, lines = made(number)
        name = f"invoice-{number:04}.md"
        (given.folder / "in" / name).write_text(text, encoding="utf-8")
        truth.append(json.dumps({"id": name, "expected": true}, ensure_ascii=False))
        quotes.append(json.dumps({"id": name, "quotes": lines}, ensure_ascii=False))
        answer = json.dumps(true, ensure_ascii=False)
        words = ", ".join(f"{field} = {json.dumps(line, ensure_ascii=False)}" for field, line in lines.items())
        known.append(f"[[known]]\ncontains = {json.dumps(true['number'])}\nanswer = '''{answer}'''\nquotes = {{ {words} }}\n")
    of_models = lambda words: "".join(f"{json.dumps(model)} = {rate}\n" for model, rate in (word.split("=") for word in words))  # noqa: E731
    rates = f"[error-rates]\n{of_models(given.rate)}\n[invented-quotes]\n{of_models(given.invented)}"
    write = lambda name, text: (given.folder / name).write_text(text, encoding="utf-8")  # noqa: E731
    write("truth.jsonl", "\n".join(truth) + "\n")
    write("quotes.jsonl", "\n".join(quotes) + "\n")
    write("schema.json", json.dumps(SCHEMA, indent=2) + "\n")
    write("checks.json", json.dumps(CHECKS, indent=2) + "\n")
    write("simulator.toml", "\n".join(known) + "\n" + rates)


if __name__ == "__main__":
    main()
