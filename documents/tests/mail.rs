//! Messages, valid and faulty.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use common::eml;
use tidegate_documents::{Extracted, Format, Limits, Unreadable, extract, left_out::Kind};

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Unreadable> {
    extract(bytes, name, &Limits::default())
}

/// Returns the text of a message with this part, without its header.
fn said(part: &[u8]) -> String {
    let message = [b"From: a@example.org\r\nMIME-Version: 1.0\r\n", part].concat();
    let text = read(&message, "a.eml").unwrap().text;
    text.split_once("\n\n").unwrap().1.to_owned()
}

/// Mailing lists put footers behind base64, and gateways lose its padding.
#[test]
fn base_64_that_is_not_whole_is_read() {
    let whole = "VGhlIHRpZGUgdHVybnMsIGRlciBXaW5kIGbDvHIgbmllbWFuZGVuLg";
    let footer = "\r\n\r\n_____________\r\nList footer";
    for (body, expected) in [
        (format!("{whole}=="), "The tide turns, der Wind für niemanden."),
        (whole.to_owned(), "The tide turns, der Wind für niemanden."),
        (
            format!("{whole}=={footer}"),
            "The tide turns, der Wind für niemanden.\n\n_____________\nList footer",
        ),
        (whole.replace("IHR", "I!HR"), "The tide turns, der Wind für niemanden."),
    ] {
        let header =
            "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n";
        assert_eq!(said(format!("{header}{body}\r\n").as_bytes()), expected, "{body}");
        let page = header.replace("plain", "html");
        assert_eq!(
            said(format!("{page}{body}").as_bytes()),
            expected.replace('\n', " ").replace("  ", " ")
        );
        let attached = format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{header}{body}\r\n--b\r\n\r\n-- \r\nafter\r\n--b--\r\n"
        );
        let text = said(attached.as_bytes());
        assert!(text.contains("für niemanden.") && text.contains("after"), "{text}");
    }
}

/// Old programs put letters into encoded words as they are.
#[test]
fn letters_of_names_are_in_the_encoding_of_their_word() {
    let header = b"From: Heinz =?iso-8859-1?Q?M\xfcller?= <m@example.org>\r\nSubject: =?koi8-r?Q?\xf0\xd2\xc9\xcc\xc9\xd7?=\r\nContent-Type: text/plain; charset=\"koi8-r\"\r\n\r\nEbb";
    let text = read(header, "a.eml").unwrap().text;
    assert_eq!(text, "From: Heinz Müller <m@example.org>\nSubject: Прилив\n\nEbb");
}

/// Old programs state ASCII or nothing for any text, and some state a wrong encoding.
#[test]
fn letters_are_what_their_bytes_say() {
    let part = |header: &str, body: &[u8]| said(&[header.as_bytes(), b"\r\n\r\n", body].concat());
    let words = "Überall fließt Wasser, und die Größe kehrt täglich wieder.";
    let latin: Vec<u8> = words.chars().map(|c| c as u8).collect();
    let plain = |charset: &str| {
        format!("Content-Type: text/plain{charset}\r\nContent-Transfer-Encoding: 8bit")
    };
    for charset in ["; charset=us-ascii", "; charset=\"US-ASCII\"", "; charset=utf-8", ""] {
        assert_eq!(part(&plain(charset), words.as_bytes()), words, "{charset}");
        assert_eq!(part(&plain(charset), &latin), words, "{charset}");
    }
    assert_eq!(part("X: y", &latin), words);
    let printable =
        "Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: quoted-printable";
    assert_eq!(part(printable, b"M=C3=BCller, f=C3=BCnf"), "Müller, fünf");
    let page = [b"<meta charset=koi8-r><p>", &b"\xf0\xd2\xc9\xd7\xc5\xd4"[..]].concat();
    assert_eq!(part("Content-Type: text/html", &page), "Привет");
}

/// A page as browsers save it.
#[test]
fn a_saved_page_is_its_text() {
    let page = "From: <Saved by Blink>\r\nSubject: Page\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; type=\"text/html\"; boundary=\"b\"\r\n\r\n\
        --b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Location: http://x/\r\n\r\n<p>The tide =C3=BC</p>\r\n\
        --b\r\nContent-Type: text/css\r\n\r\np{color:red}\r\n--b--\r\n";
    let expected = "From: Saved by Blink\nSubject: Page\n\nThe tide ü";
    assert_eq!(read(page.as_bytes(), "a.mht").unwrap().text, expected);
    // Older browsers write no header by which a message is recognized.
    let bare = page.split_once("Subject").unwrap().1;
    let read = read(format!("Subject{bare}").as_bytes(), "a.mhtml").unwrap();
    assert_eq!((read.format, read.text.as_str()), (Format::Eml, "Subject: Page\n\nThe tide ü"));
}

#[test]
fn a_message_with_what_is_attached() {
    let read = read(&eml(), "message").unwrap();
    assert_eq!(read.format, Format::Eml);
    let (before, after) = read.text.split_once("## Ports").unwrap();
    assert_eq!(
        before,
        "From: Ada <ada@example.org>\nTo: bob@example.org, Cy <cy@example.org>\nDate: 2026-11-22T10:00:00+01:00\nSubject: Größe\n\nThe tide 潮 turns.\n\n## Attachment: ports.xlsx\n\n"
    );
    assert!(after.contains("[Attachment p.png: this is a PNG image"), "{after}");
    assert!(after.ends_with("From: cy@example.org\nSubject: Inner\n\nOnly HTML"), "{after}");
}

/// A boundary is a line of its own, an attached message may be none, and uuencode is still in use.
#[test]
fn parts_end_where_they_say() {
    let message = "From: a@example.org\r\nSubject: Parts\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"b\"\r\n\r\n\
        --b\r\nContent-Type: text/plain\r\n\r\nIn a line --b is none,\r\n--bb neither.\r\n\
        --b\r\nContent-Type: text/plain; name=tide.txt\r\nContent-Disposition: attachment; filename=tide.txt\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 tide.txt\r\n#0V%T\r\n`\r\nend\r\n\
        --b\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=no.eml\r\n\r\nThis is no message!\r\n--b--\r\n";
    assert_eq!(
        read(message.as_bytes(), "a.eml").unwrap().text,
        "From: a@example.org\nSubject: Parts\n\nIn a line --b is none,\n--bb neither.\n\n\
         ## Attachment: tide.txt\n\nCat\n\n## Attachment: no.eml\n\nThis is no message!"
    );
}

/// Programs leave the plain text of a message empty and put all of it into HTML.
#[test]
fn where_the_plain_text_is_blank_the_html_is_the_message() {
    let message = |plain: &str, around: (&str, &str)| {
        format!(
            "From: a@example.org\r\nSubject: s\r\nMIME-Version: 1.0\r\n{}Content-Type: multipart/alternative; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{plain}\r\n\
             --b\r\nContent-Type: multipart/related; boundary=c\r\n\r\n\
             --c\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>only <b>here</b></p>\r\n--c--\r\n--b--\r\n{}",
            around.0, around.1
        )
    };
    let header = "From: a@example.org\nSubject: s";
    let text = |message: String| read(message.as_bytes(), "a.eml").unwrap().text;
    for plain in ["", "  \r\n\r\n", "\u{a0}\r\n", "\u{200b}"] {
        assert_eq!(text(message(plain, ("", ""))), format!("{header}\n\nonly here"), "{plain:?}");
    }
    let said = message("Only here!", ("", ""));
    assert_eq!(text(said), format!("{header}\n\nOnly here!"));
    // What the HTML says beside that is read, too.
    let other = message("Said plainly.", ("", ""));
    assert_eq!(text(other), format!("{header}\n\nSaid plainly.\n\nonly here"));
    // Other parts stay in their places.
    let mixed = (
        "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n",
        "--a\r\nContent-Type: text/plain\r\n\r\nA footer.\r\n--a--\r\n",
    );
    assert_eq!(text(message(" ", mixed)), format!("{header}\n\nonly here\n\nA footer."));
}

#[test]
fn a_header_is_shown_as_it_is_written() {
    let message = "From: a@example.org\r\nReply-To: Desk <d@example.org>\r\nTo: \r\nBcc: c@example.org\r\n\
        Date: 2026-01-05 14:30:00\r\nSubject: =?utf-8?Q?5_=E2=82?=\r\n =?utf-8?Q?=AC?=\r\n\r\nbody";
    let text = read(message.as_bytes(), "a.eml").unwrap().text;
    let expected = "From: a@example.org\nReply-To: Desk <d@example.org>\nBcc: c@example.org\n\
        Date: 2026-01-05 14:30:00\nSubject: 5 €\n\nbody";
    assert_eq!(text, expected);
    let same = message.replace("Desk <d@", "Ann <A@").replace("2026-01-05 14:30:00", "x");
    let text = read(same.as_bytes(), "a.eml").unwrap().text;
    assert!(!text.contains("Reply-To") && text.contains("Date: x\n"), "{text}");
}

#[test]
fn enriched_text_is_text() {
    let enriched = "Content-Type: text/enriched\r\n\r\n<bold>Ebb</bold> and\r\nflow";
    assert_eq!(said(enriched.as_bytes()), "Ebb and flow");
    let plain = "Content-Type: text/plain\r\n\r\nEbb and flow";
    let choice = format!(
        "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n{plain}\r\n--b\r\n{enriched}\r\n--b--\r\n"
    );
    assert_eq!(said(choice.as_bytes()), "Ebb and flow");
}

#[test]
fn the_root_of_related_parts_is_named() {
    let part = "Content-Type: multipart/related; boundary=b; start=\"<m>\"\r\n\r\n--b\r\n\
        Content-Type: text/csv\r\nContent-ID: <i>\r\n\r\na,b\r\n--b\r\n\
        Content-Type: text/html\r\nContent-ID: <m>\r\n\r\n<p>the <b>root</b></p>\r\n--b--\r\n";
    assert_eq!(said(part.as_bytes()), "the root\n\n## Attachment: without a name\n\na,b");
}

#[test]
fn messages_within_messages_are_read_to_a_bounded_depth() {
    let nested = |levels: usize| {
        let outer = "From: a@b.c\nContent-Type: message/rfc822\n\n".repeat(levels);
        read(format!("{outer}Subject: Ebb\n\nThe tide turns.").as_bytes(), "a.eml").unwrap()
    };
    assert!(nested(4).text.contains("The tide turns."), "{}", nested(4).text);
    assert!(nested(4).left_out.is_empty());
    let deep = nested(50_000);
    assert!(deep.text.contains("it is attached too deeply"), "{}", deep.text);
    assert_eq!(deep.left_out.count(Kind::UnreadParts), 1);
}

/// The message of an opaquely signed one is within the signature (RFC 8551, section 3.5.2).
#[test]
fn signed_messages_are_read() {
    let signed = |content: &[u8]| {
        let element = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let octets = element(0xa0, &element(0x04, content));
        let data = [&b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"[..], &octets].concat();
        let signed = [&b"\x02\x01\x01\x31\x00"[..], &element(0x30, &data)].concat();
        let signed = element(0xa0, &element(0x30, &signed));
        element(0x30, &[&b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"[..], &signed].concat())
    };
    let header = "Content-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
    let message = signed(b"Content-Type: text/plain\r\n\r\nThe tide turns.");
    assert_eq!(said(&[header.as_bytes(), &message].concat()), "The tide turns.");
    let encrypted: Vec<u8> =
        message.iter().map(|byte| if *byte == 2 { 3 } else { *byte }).collect();
    let text = said(&[header.as_bytes(), &encrypted].concat());
    assert!(text.contains("smime.p7m") && text.contains("encrypted"), "{text}");
    let invoice = read(&signed(b"<?xml version='1.0'?><n>17</n>"), "invoice.xml.p7m").unwrap();
    assert!(invoice.text.contains("<n>17</n>"), "{}", invoice.text);
    let clear = "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nbody\r\n--b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\n0\x02\r\n--b--\r\n";
    assert_eq!(said(clear.as_bytes()), "body");
}
