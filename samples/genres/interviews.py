"""Interviews: one person, their trade, and the questions that somebody curious would ask."""

from .core import Page

TRADES = {
    "dispatcher": {"trade": "dispatcher", "thing": "tour", "place": "dispatch room", "tool": "planning screen", "years": "<14-27>"},
    "archivist": {"trade": "archivist", "thing": "file", "place": "reading room", "tool": "catalogue", "years": "<9-22>"},
    "millwright": {"trade": "millwright", "thing": "machine", "place": "workshop", "tool": "dial gauge", "years": "<18-34>"},
    "buyer": {"trade": "buyer", "thing": "contract", "place": "purchasing office", "tool": "spreadsheet", "years": "<6-15>"},
}

QUESTIONS = [
    ("How did you come to this work?", "By mistake, like most of us. I was to fill in for <4-8> weeks in the {place}, for somebody who had broken a leg skiing. He never came back; he had met a nurse. So I owe {years} years in the trade to a patch of ice. In the first month I understood nothing and wrote everything down. I still have the notebook. What surprises me when I read it is how many of the questions were good, and that I stopped asking them once I had got used to things."),
    ("What does a normal day look like?", "It begins with coffee and with looking at what the night has left. I allow myself a quarter of an hour in which I decide nothing. After that everybody wants something, usually before nine. The real work is done between ten and twelve, when the others are in meetings. In the afternoon I mend what I have broken in the morning. I do not say that as a joke: about a <5-8>th of what I do is to undo something that was right when I did it."),
    ("What do outsiders get wrong?", "They think that a {trade} needs a good memory. You need a good way of forgetting. If I carried every {thing} around in my head I could not see the one that is odd. I keep the odd ones. The ordinary ones look after themselves, or the {tool} does it. The other thing is that they think we like order. I know nobody in this trade who has a tidy kitchen."),
    ("Tell us of a day that went wrong.", "There is one that I have told so often that I no longer know what is true. It was [the week before Christmas|the hottest day of that summer|a Monday after the clocks had changed]. Three things happened which were harmless one by one. The power failed for a second, a colleague was new, and I had a cold and wanted to go home. At four in the afternoon <11-30> people stood in the {place} and all of them looked at me. I said: we begin with the oldest one. That was no better than any other rule, but people began to move. By midnight it was done. Since then I believe in simple rules, even poor ones."),
    ("What have machines changed?", "They have taken the boring half, and I miss it. In the boring half you had time to notice things. When I had to copy numbers from one list to the next by hand, I saw when a number was strange. Now I have to set aside time in order to look. I do that on Fridays, from one to two; the others call it my prayer. In <30-50> of these hours I have found <4-9> faults which nobody would have seen before the end of the year."),
    ("Do you trust the new programmes that read and write?", "I trust them as I trust a keen trainee. I give them work where I can see the result, and I do not let them answer the telephone. We had one summarise <200-900> old letters. It was good, it was even polite, and in <3-8> cases it had made a date up because there was none. Since it now says \"no date\" in such cases I am quite content. What I do not like is that it never asks back. A trainee who never asks back worries me."),
    ("Is there a tool that you would not give away?", "My first {tool}, although it is now in a glass case, so to speak. It forced you to think before you touched it. And a pencil. Whoever writes with a pencil can admit to a mistake without a meeting. I have given a pencil to each of my <7-15> trainees. Most of them smiled. Two of them have come to me years later and shown me that they still had it."),
    ("How do you teach somebody?", "I let them watch for a week and forbid them to help. That is hard for the good ones. Then I ask what they would change. They always name the same three things, and they are always right about one. That one we change, together, in their second week. After that they belong. The rest is repetition, and a willingness to be rung at home."),
    ("What was your best decision?", "To say no to a promotion. I would have had <20-40> people and no {thing} in my hands any more. My wife thought I was mad, for about an hour. The person who took the post is good at it and dislikes it; we have lunch every other week. I would not call it courage. I just could not imagine what I should do there before eleven in the morning."),
    ("And your worst?", "I once kept quiet when I should have spoken. There was a plan on the table, with a figure in it which I knew to be old. Everybody was tired, it was past six, and the figure did not look decisive. It cost us {money} and, what is worse, the trust of a man who had believed me. I went to him and told him. He said that he had known it as well. We had both been silent out of politeness towards the other."),
    ("How does one deal with a difficult customer?", "Find out what he is afraid of. Nobody is rude about a late {thing}; they are rude because they have promised something to somebody else. If you ask what they have promised, and to whom, they become quite different people. Sometimes I ring the third one myself. In {years} years one single man remained rude, and he turned out to be in the wrong department."),
    ("What about stress?", "There is pressure and there is noise. Pressure I like. Noise is when <3-6> people ask the same question because the answer cannot be found anywhere. Half of the noise here was gone after we had hung a board on the wall with what is late and until when. It cost less than one day of sick leave. People now complain that the board is too honest."),
    ("Does the pay match the responsibility?", "No, but that is so for nurses as well, and they carry more. What I would ask for is not so much money as notice. If I know three weeks before which weekend I shall work, I can live with it. We have had that for <1-3> years now and hardly anybody leaves any more. The accountants were astonished. I was astonished that they were."),
    ("What will the trade look like in ten years?", "Smaller, and with better people. The ordinary {thing} will pass through without anybody touching it. What remains will be the odd ones, all day long, and that is tiring. One will have to pay attention that people get an easy one in between. A colleague of mine keeps a pile of easy ones for bad days. I thought that was lazy. Today I believe that it is the best idea that anybody in the {place} ever had."),
    ("What do you do when you go home?", "I grow beans. They do not ring. In summer I am out there until it is dark, and nothing that I do has any effect for at least a week, which I find restful. My daughter says that I plan the rows as I plan at work. She is right, and I have begun to leave one row to chance."),
    ("Is there something that you would abolish?", "The word \"urgent\". On a sheet of <40-90> entries I once counted <22-39> urgent ones. We replaced it by a time: until when. It turned out that most urgent things had until Thursday. The word is still used on the telephone, with a certain tone, but it can no longer be typed."),
    ("Who taught you most?", "A woman who had left school at fourteen, and who could tell by the sound of the door what kind of day it would be. She never explained anything. She did it slowly, once, and looked at you. When she retired we tried to write down what she knew. It made <9-16> pages, and when we had finished she read it and said, yes, that is what I should have written too, but it is not that."),
    ("What is beautiful about it?", "The quiet at about seven in the evening, when everything has gone out and the {place} smells of dust and warm metal. Then for a few minutes there is nothing that is late. It does not last. But I have seen people with far larger offices who do not have those minutes."),
    ("Have you ever wanted to stop?", "Twice. The first time I was <28-36> and had an offer from a friend with a boat. The boat sank, with nobody in it. The second time was after the reorganisation, when we had to apply for our own posts. I wrote my application in the form of an invoice. I was told that it had been passed round."),
    ("How do you know that something is wrong?", "In the stomach, and then I look for the reason, and in one case out of three I do not find any. That means nothing is wrong, or that I have not found it. I note the day and the feeling. After some years of such notes I can say: on Mondays my stomach cannot be trusted. On Thursdays it is right nearly every time."),
    ("What do you say to those who make the rules?", "Come for a day, and come in ordinary clothes. Those who come, come on an announced day, at eleven, when it is calm, and are given biscuits. I would show them half past four. One of them did stay until half past four, <2-6> years ago, by accident, because of a train. The rule about double signatures was gone a month later."),
    ("A last piece of advice?", "Answer before you have the answer. \"I have seen it, and I shall know more by three\" is worth more than the perfect sentence at six. It took me {years} years to learn that, and I still forget it about once a week."),
]

FOLLOW = [
    ("Did that surprise you?", "Not at the time. It was only when I told it to somebody from outside that I noticed how strange it must sound."),
    ("Really?", "Really. You may ask the others; they will tell it differently but it will come to the same."),
    ("What did your colleagues say?", "Two of them did not speak to me for a week, and one brought a cake. So the mood was about balanced."),
    ("Would you do it the same way today?", "The same, but a year sooner. One always believes that one still has to look at something first."),
    ("How long did that last?", "Until somebody asked why we were doing it. Then it turned out that there was no reason left, and it was over in an afternoon."),
    ("Can one learn that?", "One can learn to wait for it. The rest comes, or it does not come, and then there is other work that is worth just as much."),
    ("And the figures?", "They were good. They were good before as well, that is the trouble with figures: they do not know that they could be better."),
    ("Who noticed it first?", "The cleaner. She notices most things first, and she was the only one without a form to report it on. She has one now."),
]


def write(voice, trade, words, **facts):
    interviewee, asker = voice.people(2)
    voice.facts.update({key: voice.say(text) for key, text in TRADES[trade].items()}, money=voice.money(200, 1700))
    page = Page(voice)
    page.raw(f"# {facts['title']}")
    page.add("*{name} has been {article} {trade} for {years} years. {asker} spoke with [her|them] on {day} in the {place}. The conversation has been shortened and was read by both before it was printed.*", name=interviewee, article="an" if TRADES[trade]["trade"][0] in "aeiou" else "a", asker=asker, day=voice.date(2026))
    order = [QUESTIONS[0]] + voice.shuffled(QUESTIONS[1:-1])
    while page.length < words - 90 and order:
        question, answer = order.pop(0)
        page.raw(f"**{question}**\n\n" + voice.say(answer))
        if voice.number(1, 5) <= 2 and voice.left(FOLLOW) > 0 and page.length < words - 120:
            question, answer = voice.draw(FOLLOW)
            page.raw(f"**{question}**\n\n" + voice.say(answer))
    question, answer = QUESTIONS[-1]
    page.raw(f"**{question}**\n\n" + voice.say(answer))
    return page.text()
