"""Many calls at once through the vendors' own SDKs, as they come, and what became of them as JSON.

Usage: ask.py URL KEY CALLS
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai

URL, KEY, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3])


def many(ask):
    def one(number):
        try:
            return None if ask(f"Question {number}") else "empty"
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:300]

    with ThreadPoolExecutor(CALLS) as pool:
        failed = [why for why in pool.map(one, range(CALLS)) if why]
    return {"answered": CALLS - len(failed), "failed": failed}


def caught(ask):
    try:
        ask()
    except Exception as error:
        return type(error).__name__
    return None


a = anthropic.Anthropic(api_key=KEY, base_url=URL)
o = openai.OpenAI(api_key=KEY, base_url=URL + "/v1")


def user(text):
    return [{"role": "user", "content": text}]


told = {
    "openai": many(lambda text: o.chat.completions.create(model="openai:m", messages=user(text)).choices[0].message.content),
    "responses": many(lambda text: o.responses.create(model="openai:m", input=text).output_text),
    "anthropic": many(lambda text: a.messages.create(model="anthropic:m", max_tokens=50, messages=user(text)).content[0].text),
    "wrong_key": caught(lambda: openai.OpenAI(api_key="wrong", base_url=URL + "/v1").models.list()),
    "wrong_model": caught(lambda: a.messages.create(model="anthropic:other", max_tokens=5, messages=user("?"))),
}
print(json.dumps(told))
