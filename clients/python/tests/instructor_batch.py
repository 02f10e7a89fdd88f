"""A batch by instructor's own BatchProcessor, which speaks with OpenAI's batch endpoint: what came of it as JSON.

Usage: instructor_batch.py MODEL CALLS
"""

import json
import sys
import time

from instructor.batch import BatchProcessor
from pydantic import BaseModel

MODEL, CALLS = sys.argv[1], int(sys.argv[2])


class Tide(BaseModel):
    name: str
    metres: float


processor = BatchProcessor(f"openai/{MODEL}", Tide)
texts = [f"The tide of day {number} was {number} metres high." for number in range(CALLS)]
file = processor.create_batch_from_messages([[{"role": "user", "content": text}] for text in texts])
batch = processor.submit_batch(file)
seen = []
while not seen or seen[-1] not in ("completed", "failed", "expired", "cancelled"):
    status = processor.get_batch_status(batch)["status"]
    if status not in seen:
        seen.append(status)
    time.sleep(0.1)
results = processor.retrieve_results(batch)
told = {
    "seen": seen,
    "ids": [one.custom_id for one in results],
    "tides": [type(getattr(one, "result", one)).__name__ for one in results],
    "listed": [one.id == batch for one in processor.list_batches(1)],
}
print(json.dumps(told))
