#!/usr/bin/env python3
"""Writes the sample documents into `samples/documents/`, the same ones every time.

    samples/generate.py            write them
    samples/generate.py --check    exit 1 if the folder holds anything else
    samples/generate.py --stats    how long they are

The lengths follow a log-normal law, as those of real document stores do: most are short, and a few hold most of the words.
That is what makes a batch of them worth watching: a limiter that counts requests and not tokens does badly on it.
"""

import argparse
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True

from genres import contracts, incidents, interviews, invoices, languages, letters, manuals, minutes, notes, research  # noqa: E402
from genres.core import Voice, words  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent / "documents"

NORTHMERE, HALVORSEN, KESTREL = "Northmere Logistics", "Halvorsen Tidal Works", "Kestrel Bay Foods"
BRANDT, PENDER, LINDQVIST = "Brandt & Osei Packaging", "Pender Lock Water Board", "Lindqvist Instruments"

# Path, writer, and what the writer is told; "words" is a wish, which texts with little to say do not fulfil.
DOCUMENTS = [
    ("contracts/master-services-agreement.md", contracts.write, dict(kind="services", a=NORTHMERE, b="Calder Facility Services", words=6000, title="Master agreement on the care of buildings and yards")),
    ("contracts/warehouse-lease-aldport.md", contracts.write, dict(kind="lease", a="Aldport Harbour Estates", b=NORTHMERE, words=2400, title="Lease of hall and yard at Aldport", place="Quay Street 14, Aldport")),
    ("contracts/supply-of-closures.md", contracts.write, dict(kind="supply", a=KESTREL, b=BRANDT, words=2000, title="Supply agreement for bottles and closures", place="the bottling plant at Lower Tarn")),
    ("contracts/data-processing.md", contracts.write, dict(kind="data", a=NORTHMERE, b="Signal Hill Hosting", words=1500, title="Agreement on the processing of personal data")),
    ("contracts/mutual-confidentiality.md", contracts.write, dict(kind="nda", a=HALVORSEN, b=LINDQVIST, words=650, title="Mutual agreement on confidentiality", subject="a strain gauge that survives three winters under water")),
    ("contracts/programme-licence.md", contracts.write, dict(kind="licence", a=PENDER, b="Ropewalk Software", words=1250, title="Licence and care of the programme Lockkeeper")),
    ("contracts/maintenance-pumping.md", contracts.write, dict(kind="services", a=PENDER, b=HALVORSEN, words=3300, title="Maintenance of pumping stations")),
    ("contracts/amendment-2.md", contracts.amendment, dict(a=PENDER, b=HALVORSEN, title="Second amendment")),
    ("contracts/amendment-3.md", contracts.amendment, dict(a=NORTHMERE, b="Calder Facility Services", title="Third amendment")),
    ("letters/complaint-crushed-cases.md", letters.write, dict(kind="complaint", sender=KESTREL, recipient=NORTHMERE, words=330, subject="Damaged delivery", place="cold store")),
    ("letters/complaint-second.md", letters.write, dict(kind="complaint", sender=LINDQVIST, recipient=NORTHMERE, words=220, subject="Delivery in poor condition", place="instrument shop")),
    ("letters/offer-stock-survey.md", letters.write, dict(kind="offer", sender="Weaver Consulting", recipient=BRANDT, words=320, subject="Offer: survey of the stock rooms", place="stock rooms")),
    ("letters/offer-crane-control.md", letters.write, dict(kind="offer", sender=LINDQVIST, recipient=HALVORSEN, words=240, subject="Offer: new control for the slipway crane", place="slipway")),
    ("letters/reference.md", letters.write, dict(kind="reference", sender=NORTHMERE, recipient=PENDER, words=300, subject="Reference")),
    ("letters/notice-of-termination.md", letters.write, dict(kind="notice", sender=BRANDT, recipient="Calder Facility Services", words=310, subject="Notice", place="print hall")),
    ("letters/reminder-first.md", letters.write, dict(kind="reminder", sender="Tannery Row Printers", recipient=KESTREL, words=150, subject="Our invoice")),
    ("letters/reminder-second.txt", letters.write, dict(kind="reminder", sender=LINDQVIST, recipient="Glasshouse Lane Nursery", words=260, subject="Second reminder")),
    ("letters/reply-standstill.md", letters.write, dict(kind="reply", sender=HALVORSEN, recipient=PENDER, words=340, subject="Standstill of the works", place="lower gate")),
    ("letters/invitation-opening.md", letters.write, dict(kind="invitation", sender=NORTHMERE, recipient="Parish of Wexholt", words=260, subject="Open day", place="sorting hall")),
    ("letters/2025/notice-storage.md", letters.write, dict(kind="notice", sender=KESTREL, recipient=NORTHMERE, words=200, subject="End of the storage agreement", place="cell 4")),
    ("letters/2025/reply-drawings.md", letters.write, dict(kind="reply", sender=LINDQVIST, recipient="Old Customs House", words=230, subject="Your question about the delay", place="archive floor")),
    ("minutes/board-spring.md", minutes.write, dict(kind="company", body="board of Northmere Logistics, spring", day="21 April 2026", next_day="14 July 2026", words=1150)),
    ("minutes/board-autumn.md", minutes.write, dict(kind="company", body="board of Northmere Logistics, autumn", day="13 October 2026", next_day="19 January 2027", words=1850)),
    ("minutes/site-managers.md", minutes.write, dict(kind="company", body="site managers", day="4 June 2026", next_day="2 July 2026", words=600, place="Wexholt")),
    ("minutes/works-council.md", minutes.write, dict(kind="company", body="works council and management", day="18 May 2026", next_day="15 June 2026", words=420)),
    ("minutes/project-lockkeeper-07.md", minutes.write, dict(kind="project", body="project Lockkeeper, meeting 7", day="9 March 2026", next_day="6 April 2026", words=900)),
    ("minutes/project-lockkeeper-08.md", minutes.write, dict(kind="project", body="project Lockkeeper, meeting 8", day="6 April 2026", next_day="4 May 2026", words=450)),
    ("minutes/parish-wexholt.md", minutes.write, dict(kind="parish", body="parish council of Wexholt", day="11 February 2026", next_day="11 March 2026", words=560)),
    ("minutes/parish-highmoor.md", minutes.write, dict(kind="parish", body="parish council of Highmoor", day="3 September 2026", next_day="1 October 2026", words=300)),
    ("incidents/booking-outage.md", incidents.write, dict(kind="outage", title="Booking not available", words=1900)),
    ("incidents/scanner-network.md", incidents.write, dict(kind="outage", title="Scanners without network", words=520, place="Aldport")),
    ("incidents/dock-plate.md", incidents.write, dict(kind="injury", title="Accident at the dock", words=800)),
    ("incidents/return-roller.md", incidents.write, dict(kind="injury", title="Hand caught at a roller", words=400, place="Foundry Road")),
    ("incidents/cold-store.md", incidents.write, dict(kind="spoilage", title="Rise of temperature overnight", words=2600, place="Quay 4, Aldport")),
    ("incidents/trailer-chiller.md", incidents.write, dict(kind="spoilage", title="Chiller of a trailer", words=480)),
    ("incidents/wrong-addressee.md", incidents.write, dict(kind="privacy", title="List sent to the wrong addressee", words=640)),
    ("incidents/payslips.md", incidents.write, dict(kind="privacy", title="Pay slips in the corridor", words=360)),
    ("notes/lockkeeper-4-2.md", notes.write, dict(product="Lockkeeper", version="4.2", words=700)),
    ("notes/lockkeeper-4-2-1.md", notes.write, dict(product="Lockkeeper", version="4.2.1", words=330, intro="This version mends what 4.2 broke, and adds nothing. Thank you for writing to us so soon.", without=["New", "Going away"])),
    ("notes/tourboard-11.md", notes.write, dict(product="Tourboard", version="11", words=850)),
    ("notes/countwise-2026-3.txt", notes.write, dict(product="Countwise", version="2026.3", words=480)),
    ("notes/paydesk-7.md", notes.write, dict(product="Paydesk", version="7", words=560)),
    ("research/tidal-fatigue.md", research.write, dict(topic="tides", words=260, place="strait off Kestrel Bay")),
    ("research/cover-crops.md", research.write, dict(topic="soil", words=210, place="Wexholt")),
    ("research/rosters-and-sleep.md", research.write, dict(topic="sleep", words=260, place="Northmere")),
    ("research/harbour-ledgers.md", research.write, dict(topic="ocr", words=210, place="Aldport")),
    ("research/appointments-working-paper.md", research.write, dict(topic="queues", words=1400, place="Northmere")),
    ("research/bakery-heat.txt", research.write, dict(topic="bakery", words=260, place="Wexholt")),
    ("invoices/2026-freight.txt", invoices.write, dict(kind="freight", sender=NORTHMERE, recipient=KESTREL, lines=14)),
    ("invoices/2026-pump-repair.txt", invoices.write, dict(kind="engineering", sender=HALVORSEN, recipient=PENDER, lines=10)),
    ("invoices/2026-open-day-catering.txt", invoices.write, dict(kind="catering", sender="Weaver's Court Kitchen", recipient=NORTHMERE, lines=8)),
    ("invoices/2026-translation.txt", invoices.write, dict(kind="translation", sender="Threlfall Languages", recipient=LINDQVIST, lines=6)),
    ("invoices/2026-brochures.txt", invoices.write, dict(kind="print", sender="Tannery Row Printers", recipient=BRANDT, lines=7)),
    ("interviews/dispatcher.md", interviews.write, dict(trade="dispatcher", words=2500, title="\"We begin with the oldest one\"")),
    ("interviews/archivist.md", interviews.write, dict(trade="archivist", words=1400, title="A good way of forgetting")),
    ("manuals/pump-house.md", manuals.write, dict(plant="pump house", words=5400, title="Operating manual for the pump house at Pender Lock")),
    ("manuals/bottling-line.md", manuals.write, dict(plant="bottling line", words=3500, title="Bottling line 2: operation and care")),
    ("languages/de/antwort-brandhorst.md", languages.write, dict(kind="de-brief")),
    ("languages/de/protokoll-halle-7.md", languages.write, dict(kind="de-protokoll")),
    ("languages/de/wartungsbericht.txt", languages.write, dict(kind="de-bericht")),
    ("languages/fr/renouvellement-quai-4.md", languages.write, dict(kind="fr-lettre")),
    ("languages/fr/compte-rendu-copropriete.md", languages.write, dict(kind="fr-compte-rendu")),
    ("languages/es/informe-envasado.md", languages.write, dict(kind="es-informe")),
    ("languages/es/carta-cooperativa.md", languages.write, dict(kind="es-carta")),
]


def documents():
    """Each path with its text."""
    texts = {}
    for path, write, facts in DOCUMENTS:
        if path in texts:
            raise SystemExit(f"{path} is listed twice")
        texts[path] = write(Voice(path, {}), **facts)
    return texts


def found():
    return {str(p.relative_to(ROOT)): p.read_bytes() for p in sorted(ROOT.rglob("*")) if p.is_file()} if ROOT.exists() else {}


def check(texts):
    have = found()
    faults = [f"missing: {path}" for path in texts if path not in have]
    faults += [f"not ours: {path}" for path in have if path not in texts]
    faults += [f"differs: {path}" for path, text in texts.items() if path in have and have[path] != text.encode()]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print("run samples/generate.py and look at the difference", file=sys.stderr)
    return 1 if faults else 0


def stats(texts):
    lengths = sorted((words(text), path) for path, text in texts.items())
    for length, path in lengths:
        print(f"{length:6} {path}")
    counts = [length for length, _ in lengths]
    print(f"{len(counts)} documents, {sum(counts)} words, {sum(len(t.encode()) for t in texts.values())} bytes, median {counts[len(counts) // 2]}")
    return 0


def write(texts):
    if ROOT.exists():
        shutil.rmtree(ROOT)
    for path, text in texts.items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="compare, write nothing")
    mode.add_argument("--stats", action="store_true", help="list the lengths, write nothing")
    arguments = parser.parse_args()
    texts = documents()
    return check(texts) if arguments.check else stats(texts) if arguments.stats else write(texts)


if __name__ == "__main__":
    sys.exit(main())
