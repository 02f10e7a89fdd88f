#!/usr/bin/env python3
"""Compares what tidegate reads of documents with what other tools read.

    python3 -m venv .venv && .venv/bin/pip install -r documents/benches/requirements.txt
    apt-get install poppler-utils pandoc
    cargo build --release -p tidegate-documents
    .venv/bin/python documents/benches/compare.py --reader target/release/read-document [FOLDER…]

Files are made here, with their words and rows known; those of the folders are real ones, and their
words are those that at least two of the other tools find; formats with one peer alone are left out. For each format and tool, the table has
the median over the files of
  recall   of the words (each as often as it is there),
  order    of the pairs of neighbouring words,
  tables   of the rows of tables whose cells stand in one line, in order,
and, of files of a quarter of a megabyte or more, the seconds of processor time for a megabyte (so other work on
the machine does not count) and the largest memory in megabytes. `--large` makes one such file of each format. Below
it stands each file in which tidegate's recall is under .97 or under the best of the others.

`--times` measures the PDFs of the folders alone, against pdftotext: the processor time of each file is the least of three
runs, start of the process included; then the sums, and the files of the largest ratio. Files at which pdftotext or tidegate
fails, such as encrypted ones, are left out.
"""

import argparse, collections, json, multiprocessing, os, pathlib, random, re, shutil, statistics, subprocess
import sys, tempfile, unicodedata, zipfile

WORDS = "the tide turns twice a day and nobody waits for it while small harbours count their ships before night falls over grey water".split()


def words(text):
    # A ligature is its letters.
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())


def share(found, wanted):
    found, wanted = collections.Counter(found), collections.Counter(wanted)
    total = sum(wanted.values())
    return sum(min(found[key], n) for key, n in wanted.items()) / total if total else None


def pairs(text):
    all_words = words(text)
    return list(zip(all_words, all_words[1:]))


def rows_found(text, rows):
    lines = [" ".join(words(line)) for line in text.splitlines()]
    hits = sum(any(re.search(r"\b.*\b".join(map(re.escape, (" ".join(words(c)) for c in row))), line)
                   for line in lines) for row in rows)
    return hits / len(rows) if rows else None


# ---- files whose words are known ------------------------------------------------------------------

def sentence(seed, length=60):
    return " ".join(WORDS[(seed * 7 + n * (1 + seed % 5)) % len(WORDS)] for n in range(length)) + "."


ROWS = [["Port", "Metres", "Day"], ["Brest", "7", "Monday"], ["Saint Malo", "12", "Tuesday"], ["Dover", "6", "Friday"]]


def make_docx(path, seed):
    import docx
    made = docx.Document()
    made.add_heading(f"Tides {seed}", 1)
    made.add_paragraph(sentence(seed))
    for item in ("one", "two"):
        made.add_paragraph(item, style="List Number")
    table = made.add_table(len(ROWS), 3)
    for r, row in enumerate(ROWS):
        for c, cell in enumerate(row):
            table.cell(r, c).text = cell
    made.sections[0].header.paragraphs[0].text = "Harbour office"
    made.add_paragraph(sentence(seed + 1))
    made.save(path)
    return "Harbour office " + f"Tides {seed} " + sentence(seed) + " one two " + flat(ROWS) + sentence(seed + 1)


def make_xlsx(path, seed):
    import openpyxl
    book = openpyxl.Workbook()
    book.active.title = "Ports"
    for row in ROWS:
        book.active.append([int(c) if c.isdigit() else c for c in row])
    notes = book.create_sheet("Notes")
    notes["C3"] = sentence(seed)
    book.save(path)
    return "Ports " + flat(ROWS) + "Notes " + sentence(seed)


def make_pptx(path, seed):
    import pptx
    from pptx.util import Inches
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = f"Tides {seed}"
    slide.placeholders[1].text_frame.text = sentence(seed)
    slide.notes_slide.notes_text_frame.text = "Say it slowly"
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Ports"
    table = slide.shapes.add_table(len(ROWS), 3, 0, 0, Inches(5), Inches(2)).table
    for r, row in enumerate(ROWS):
        for c, cell in enumerate(row):
            table.cell(r, c).text = cell
    show.save(path)
    return f"Tides {seed} " + sentence(seed) + " Say it slowly Ports " + flat(ROWS)


def make_epub(path, seed):
    from ebooklib import epub
    book = epub.EpubBook()
    book.set_title("Tides")
    chapters = []
    for n in (1, 2):
        chapter = epub.EpubHtml(title=f"C{n}", file_name=f"c{n}.xhtml")
        chapter.content = f"<h1>Chapter {n}</h1><p>{sentence(seed + n)}</p>{html_table()}"
        book.add_item(chapter)
        chapters.append(chapter)
    book.spine, book.toc = chapters, chapters
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(path), book)
    return " ".join(f"Chapter {n} " + sentence(seed + n) + flat(ROWS) for n in (1, 2))


def html_table():
    return "<table>" + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in ROWS) + "</table>"


def make_html(path, seed):
    path.write_text(f"<!doctype html><title>x</title><form><h1>Tides {seed}</h1><p>{sentence(seed)}</p>{html_table()}"
                    f"<ul><li>one<li>two</ul><p style='display:none'>unseen</p></form>")
    return f"Tides {seed} " + sentence(seed) + flat(ROWS) + "one two"


def make_eml(path, seed):
    from email.message import EmailMessage
    with tempfile.TemporaryDirectory() as folder:
        sheet = pathlib.Path(folder) / "ports.xlsx"
        attached = make_xlsx(sheet, seed)
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "Ada <ada@example.org>", "bob@example.org", "Größe der Flut"
        message.set_content(sentence(seed))
        message.add_alternative(f"<p>{sentence(seed)}</p>", subtype="html")
        message.add_attachment(sheet.read_bytes(), maintype="application", subtype="octet-stream", filename="ports.xlsx")
        path.write_bytes(bytes(message))
    return "Größe der Flut " + sentence(seed) + attached


def make_pdf(path, seed):
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Table, Spacer
    style = getSampleStyleSheet()["BodyText"]
    page = BaseDocTemplate(str(path), pagesize=A4)
    columns = [Frame(50, 50, 235, 740), Frame(310, 50, 235, 740)]
    page.addPageTemplates(PageTemplate(frames=columns))
    story, said = [], ""
    for n in range(12):
        story.append(Paragraph(sentence(seed + n), style))
        said += sentence(seed + n) + " "
    story += [Spacer(1, 12), Table(ROWS)]
    page.build(story)
    return said + flat(ROWS)


def flat(rows):
    return " ".join(" ".join(row) for row in rows) + " "


MADE = {"docx": make_docx, "xlsx": make_xlsx, "pptx": make_pptx, "epub": make_epub, "html": make_html,
        "eml": make_eml, "pdf": make_pdf}


# ---- files that take time ---------------------------------------------------------------------------

def large(kind, path):
    """A file of some megabytes, of words that an archive does not make much smaller; its words."""
    dice = random.Random(15)
    line = lambda count: " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(count))
    pages = [[line(60) for _ in range(40)] for _ in range(150)]
    said = " ".join(text for page in pages for text in page)
    if kind == "docx":
        import docx
        made = docx.Document()
        for text in (text for page in pages for text in page):
            made.add_paragraph(text)
        made.save(path)
    elif kind == "xlsx":
        import openpyxl
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Words")
        for text in (text for page in pages for text in page):
            for at in range(0, 60, 6):
                sheet.append(text.split()[at:at + 6])
        book.save(path)
        said = "Words " + said
    elif kind == "pptx":
        import pptx
        show = pptx.Presentation()
        for texts in pages:
            slide = show.slides.add_slide(show.slide_layouts[1])
            slide.shapes.title.text = texts[0]
            slide.placeholders[1].text_frame.text = "\n".join(texts[1:])
        show.save(path)
    elif kind == "odt":
        name = lambda text: "".join(f"<text:p>{t}</text:p>" for t in text)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("mimetype", "application/vnd.oasis.opendocument.text")
            made.writestr("META-INF/manifest.xml", '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>')
            made.writestr("content.xml", '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
                          'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
                          + "".join(map(name, pages)) + "</office:text></office:body></office:document-content>")
    elif kind == "epub":
        from ebooklib import epub
        book, chapters = epub.EpubBook(), []
        for n, texts in enumerate(pages):
            chapters.append(epub.EpubHtml(title=f"C{n}", file_name=f"c{n}.xhtml", content="".join(f"<p>{t}</p>" for t in texts)))
            book.add_item(chapters[-1])
        book.spine = book.toc = chapters
        book.add_item(epub.EpubNcx())
        book.add_item(epub.EpubNav())
        epub.write_epub(str(path), book)
    elif kind == "eml":
        from email.message import EmailMessage
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "Ada <ada@example.org>", "bob@example.org", "Words"
        message.set_content("\n".join(text for page in pages for text in page))
        path.write_bytes(bytes(message))
    elif kind == "pdf":
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.platypus import Paragraph, SimpleDocTemplate
        style = getSampleStyleSheet()["BodyText"]
        SimpleDocTemplate(str(path)).build([Paragraph(text, style) for page in pages for text in page])
    else:
        mark = "<p>" if kind == "html" else ""
        path.write_text(("<!doctype html>" if kind == "html" else "") + "\n".join(mark + text for page in pages for text in page))
    return said


LARGE = ["docx", "xlsx", "pptx", "odt", "epub", "html", "eml", "pdf"]


# ---- tools ----------------------------------------------------------------------------------------

def run(command, stdin=b""):
    """What a command says, its processor time and its memory in megabytes; nothing if it failed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        child = subprocess.Popen(command, stdin=given, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        child.returncode = status
        out.seek(0)
        said = out.read()
    return (said if status == 0 else b""), seconds, usage.ru_maxrss / 1024


def tidegate(launch, reader, path):
    limits = {"bytes": 256 << 20, "pages": 5000, "unpacked_bytes": 1 << 30, "archive_bytes": 256 << 20, "members": 10000,
              "text_bytes": 256 << 20, "picture_edge": 1568, "picture_bytes": 3750000, "page_pictures": 0,
              "hidden": "drop", "memory": 8 << 30, "time": {"secs": 300, "nanos": 0}}
    task = json.dumps({"name": path.name, "limits": limits, "work": "extract"}).encode() + b"\n"
    said, seconds, memory = launch([reader], task + path.read_bytes())
    if not said:
        print(f"{path.name}: the reader crashed", file=sys.stderr)
    answer = json.loads(said or "{}")
    return answer.get("Ok", {}).get("text", ""), seconds, memory


def least(launch, times, measure):
    """The least processor time of some runs, in seconds; nothing if nothing is said."""
    runs = [measure(launch) for _ in range(times)]
    return min(run[1] for run in runs) if all(run[0].strip() for run in runs) else None


def compare_times(launch, reader, folders):
    rows = []
    for path in (path for folder in folders for path in sorted(folder.rglob("*.pdf"))):
        ours = least(launch, 3, lambda launch: tidegate(launch, reader, path))
        theirs = least(launch, 3, lambda launch: launch(["pdftotext", "-q", str(path), "-"]))
        if ours is not None and theirs is not None:
            rows.append((ours / theirs, ours, theirs, path.name))
    ours, theirs = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"{len(rows)} PDFs: tidegate {ours:.2f} s, pdftotext {theirs:.2f} s, ratio {ours / theirs:.2f}; "
          f"median of the ratios {statistics.median(row[0] for row in rows):.2f}")
    print("| file | tidegate, ms | pdftotext, ms | ratio |")
    print("|---|---|---|---|")
    for ratio, ours, theirs, name in sorted(rows, reverse=True)[:10]:
        print(f"| {name} | {1000 * ours:.0f} | {1000 * theirs:.0f} | {ratio:.2f} |")


MARKITDOWN = "import sys; from markitdown import MarkItDown; sys.stdout.write(MarkItDown().convert(sys.argv[1]).text_content)"
PYMUPDF = "import sys, pymupdf; sys.stdout.write('\\n'.join(p.get_text() for p in pymupdf.open(sys.argv[1])))"


def peers(path):
    kind = path.suffix[1:]
    tools = {"markitdown": [sys.executable, "-c", MARKITDOWN, str(path)]}
    if kind == "pdf":
        tools["pdftotext"] = ["pdftotext", "-q", str(path), "-"]
        tools["pymupdf"] = [sys.executable, "-c", PYMUPDF, str(path)]
    elif kind in ("docx", "epub", "html", "odt"):
        tools["pandoc"] = ["pandoc", "-t", "plain", "--wrap=none", str(path)]
    return {name: command for name, command in tools.items() if shutil.which(command[0])}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--reader", required=True, help="the program read-document")
    arguments.add_argument("--made", type=int, default=3, help="files to make of each format")
    arguments.add_argument("--large", action="store_true", help="make files of some megabytes, for time and memory")
    arguments.add_argument("--times", action="store_true", help="measure the folders' PDFs against pdftotext, and nothing else")
    arguments.add_argument("folders", nargs="*", type=pathlib.Path)
    chosen = arguments.parse_args()
    figures, misses = collections.defaultdict(list), []
    # A program's memory counts from what its parent had when it began: so that is a process that stays small.
    with multiprocessing.Pool(1) as small, tempfile.TemporaryDirectory() as folder:
        launch = lambda *command: small.apply(run, command)
        if chosen.times:
            return compare_times(launch, chosen.reader, chosen.folders)
        files = []
        for kind, make in MADE.items():
            for seed in range(chosen.made):
                path = pathlib.Path(folder) / f"made-{seed}.{kind}"
                files.append((path, make(path, seed), ROWS))
        for kind in LARGE if chosen.large else []:
            path = pathlib.Path(folder) / f"large.{kind}"
            files.append((path, large(kind, path), []))
        for real in chosen.folders:
            files += [(path, None, []) for path in sorted(real.rglob("*")) if path.suffix[1:] in MADE or path.suffix == ".odt"]
        for path, truth, rows in files:
            kind = ("large " if path.stem == "large" else "made " if truth else "real ") + path.suffix[1:]
            size = path.stat().st_size / 2**20
            said = {"tidegate": tidegate(launch, chosen.reader, path)}
            for name, command in peers(path).items():
                out, seconds, memory = launch(command)
                said[name] = (out.decode("utf-8", "replace"), seconds, memory)
            if truth is None and len(said) < 3:
                continue  # Nobody to agree with.
            if truth is None:
                others = [text for name, (text, _, _) in said.items() if name != "tidegate"]
                wanted, order = agreed([words(t) for t in others]), agreed([pairs(t) for t in others])
            else:
                wanted, order = collections.Counter(words(truth)), collections.Counter(pairs(truth))
            if not wanted:
                continue
            recalls = {}
            for name, (text, seconds, memory) in said.items():
                recalls[name] = share(words(text), wanted)
                speed = (seconds / size, memory) if size >= 0.25 else (None, None)
                figures[kind, name].append((recalls[name], share(pairs(text), order), rows_found(text, rows), *speed))
            best = max((r for name, r in recalls.items() if name != "tidegate"), default=0)
            if recalls["tidegate"] < 0.97 or recalls["tidegate"] < best - 0.005:
                misses.append((path.name, recalls))
    print("| files | tool | recall | order | tables | s/MB | MB |")
    print("|---|---|---|---|---|---|---|")
    for (kind, name), rows in sorted(figures.items()):
        middle = lambda at: [row[at] for row in rows if row[at] is not None]
        cells = [f"{statistics.median(middle(at)):.3f}" if middle(at) else "" for at in range(3)]
        cells += [f"{statistics.median(middle(3)):.2f}", f"{max(middle(4)):.0f}"] if middle(3) else ["", ""]
        print(f"| {kind} ({len(rows)}) | {name} | {' | '.join(cells)} |")
    for name, recalls in misses:
        print("-", name, ", ".join(f"{tool} {r:.3f}" for tool, r in recalls.items()))


def agreed(others):
    """What at least two of the tools find, as often as the second of them does."""
    counts = [collections.Counter(found) for found in others]
    every = set().union(*counts) if counts else set()
    second = lambda key: sorted((count[key] for count in counts), reverse=True)[1 if len(counts) > 1 else 0]
    return collections.Counter({key: second(key) for key in every if second(key)})


if __name__ == "__main__":
    main()
