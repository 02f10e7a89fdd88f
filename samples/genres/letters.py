"""Letters: complaint, offer, reference, notice, reply, reminder and a few more."""

from .core import Page

BODIES = {
    "complaint": [
        "We write about order {ref}, which your driver left at our {place} on {date}. Of the <12-40> cases listed on the delivery note, <2-6> were [crushed at the corner|wet through|missing their seals], and nobody on our side was asked to sign for them.",
        "Our receiving clerk photographed the pallet before it was moved. The pictures, which are enclosed, show that the lower layer had [slipped during the journey|been stacked against the marking on the carton|stood in water for some time].",
        "We have since had to tell <3-9> customers that their own deliveries will be late. Two of them have asked us to bear the cost of a replacement from another supplier, which comes to {amount}.",
        "We value an arrangement that has worked for <4-11> years, and we do not want one bad morning to end it. We ask for three things: a credit note for the damaged cases, replacements by the end of next week, and a word with the carrier about how our goods are loaded.",
        "If you would rather inspect the goods yourselves, they stand untouched in bay <1-9> until {date2}. After that day we need the space and shall [send them back at your cost|have them destroyed].",
        "This is the second delivery this quarter to arrive in such a state. We let the first pass because the harm was small; perhaps we should have spoken sooner.",
    ],
    "offer": [
        "Thank you for showing us round the {place} on {date}. We understood that the present arrangement costs you [a morning every week|more overtime than anybody likes|two lost orders a month], and that you would like it mended before the [season starts|audit in the spring|lease is renewed].",
        "We propose to do the work in two steps. In the first, which takes <3-6> weeks, we measure what happens today and agree with your foremen what ought to happen. In the second, we install, train and hand over.",
        "The price for both steps together is {amount}, travel included and tax not. It is fixed: if we have misjudged the effort, that is our concern and not yours.",
        "You may stop after the first step. You would then owe <30-45> per cent of the sum and keep every measurement and drawing that we have made.",
        "Our {person} would lead the work. She has done the same for <3-8> companies of your size, and two of them have agreed to take a call from you.",
        "The offer stands until {date2}. A start in the first week of the following month would let us finish before your busiest time.",
    ],
    "reference": [
        "You asked me for a word about {person}, who worked in my department from {date} until this spring. I give it gladly.",
        "She came to us as a [dispatcher|laboratory assistant|junior buyer] and left as the person whom everybody asked first. Within a year she had rewritten the [duty roster|sampling plan|order book], which had grown by accident for a decade, so that a newcomer could follow it.",
        "What I valued most was her way with bad news. When a shipment of {amount} went astray she told the customer before the customer noticed, said what we knew and what we did not, and rang again every two hours until it was found.",
        "She is not quick to speak in large meetings, and a new manager may at first take that for a lack of opinions. It is not. Ask her a question and leave a pause.",
        "We would have kept her if our [site had not moved|budget had allowed a senior post], and I should employ her again tomorrow.",
        "Do ring me if a letter is not enough. I am at my desk most mornings before ten.",
    ],
    "notice": [
        "This letter gives notice that our agreement about the {place}, signed on {date}, ends on {date2}. The notice period of <3-6> months in clause <8-14> is thereby kept.",
        "The reason is no dissatisfaction with your work. Our parent company has decided to bring [storage|cleaning|printing|payroll] for all its sites under one roof, and ours is among the smaller ones.",
        "Until the last day everything remains as it is: the same hours, the same contact, the same monthly invoice. We ask you to keep the present team on our site, since our people know them by name.",
        "Please let us have, not later than four weeks before the end, a list of the keys, badges and equipment that are yours, and of what is ours and in your keeping. {person} will walk the site with you and sign the list.",
        "The deposit of {amount} will be returned within thirty days after the handover, less only what the list shows to be missing.",
        "For <5-12> years nobody here has had to think about the matter at all, which is the best that can be said of such a service. Thank you.",
    ],
    "reminder": [
        "Our invoice {ref} of {date} for {amount} was due <21-60> days ago, and our bank has not seen it yet. Perhaps it has been overlooked; perhaps it never reached the right desk, and so a copy is enclosed.",
        "If something about the delivery was not in order, please tell us now, so that we can put it right instead of writing letters.",
        "Otherwise we ask you to pay by {date2}. If that is difficult in one sum, {person} in our accounts office can agree on instalments without further formality.",
        "We have so far charged no interest and should prefer to keep it that way. Please understand that from the date above we shall have to, at the rate that the general terms name.",
        "Should your payment have crossed with this letter, please disregard it with our thanks.",
    ],
    "reply": [
        "Your letter of {date} asks why the work at the {place} stopped for <4-12> days. You are right to ask, and the answer should have come from us before the question did.",
        "On the first morning our crew found that the floor plan which we had been given and the floor itself disagreed by almost <20-60> centimetres. To go on would have meant cutting into a [load-bearing beam|live cable duct|water main], so the foreman sent everyone home and rang the office.",
        "The office then lost two days of its own: the message was taken for a routine one and waited in a tray. That part is our fault alone, and we have changed who reads such messages and when.",
        "A surveyor has since measured the whole level. Her drawing is enclosed, and the work goes on from {date2} with a crew that is larger by two people.",
        "We shall not charge the standstill, nor the surveyor. The sum that you withheld, {amount}, may stay withheld until you are content with what you see.",
        "{person}, who signs with me, will come by every Thursday until the end. Please show her what displeases you on the spot; it is easier to mend while the tools are there.",
    ],
    "invitation": [
        "On {date2} we open the new {place}, <14-26> months after the first spade went into the ground, and we should be glad to have you with us.",
        "Doors open at ten. At half past, {person} will show how [a parcel finds its way from the ramp to the van|the cold store keeps its temperature with half the power|the old press was taken apart and put together again]; those who prefer coffee to machinery will find it on the first floor.",
        "At noon there is soup, bread and an honest answer to any question about what it cost ({amount}, a little more than planned) and what we should do differently.",
        "Children are welcome and will be given helmets. The yard is no place for thin shoes.",
        "Please tell us by the end of the month whether you are coming, and with how many. A reply on a postcard will do.",
    ],
}

OPENING = ["Dear {addressee},", "Dear {addressee}, dear colleagues,", "Dear {addressee},"]
CLOSING = ["Yours sincerely,", "With kind regards,", "Yours faithfully,"]


def write(voice, kind, sender, recipient, words, **facts):
    person, addressee = voice.people(2)
    voice.facts.update(
        person=person, addressee=addressee, ref=f"{voice.pick('ABKLNR')}-{voice.number(10400, 98800)}", date=voice.date(2025), date2=voice.date(2026),
        amount=voice.money(30, 900), place=facts.get("place", "warehouse"),
    )
    page = Page(voice)
    page.raw(f"{sender}\n{voice.number(2, 120)} {voice.pick(['Quay Street', 'Mill Lane', 'Foundry Road', 'Harbour Rise', 'Chapel Row'])}, {voice.pick(['Northmere', 'Aldport', 'Kestrel Bay', 'Wexholt'])}")
    page.raw(f"{recipient}\nFor the attention of {addressee}")
    page.raw(voice.date(2026))
    page.raw(f"**{facts['subject']}**")
    page.add(voice.pick(OPENING))
    for paragraph in BODIES[kind]:
        if page.length > words:
            break
        page.add(paragraph)
    page.add(voice.pick(CLOSING))
    page.raw(f"{voice.people(3)[2]}\n{sender}")
    return page.text()
