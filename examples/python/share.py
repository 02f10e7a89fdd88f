"""Makes fake calls within a shared quota and prints each admission.

    python3 share.py --url redis://127.0.0.1 --model sim:small --combined 100000 --calls 20
"""

import argparse
import time
import uuid

from tidegate_quota import Limits, Quota


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="redis://127.0.0.1")
    parser.add_argument("--prefix", default="tidegate")
    parser.add_argument("--model", default="sim:small")
    parser.add_argument("--name", default=f"share-{uuid.uuid4().hex[:8]}", help="begins each reservation id")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=1_000, help="input tokens of each call")
    parser.add_argument("--combined", type=int, default=100_000, help="the provider's tokens a window")
    parser.add_argument("--margin", type=float, default=0.98)
    parser.add_argument("--window", type=float, default=60.5, help="seconds")
    parser.add_argument("--burst", type=float, default=2.5, help="seconds")
    given = parser.parse_args()
    limits = Limits(combined=given.combined, margin=given.margin, window=given.window, burst=given.burst)
    quota = Quota(given.url, given.model, limits, prefix=given.prefix)
    started = time.monotonic()
    for number in range(given.calls):
        asked = time.monotonic()
        permit = quota.admit(f"{given.name}-{number}", input_tokens=given.tokens, max_wait=600.0)
        now = time.monotonic()
        print(f"{now - started:8.3f} s  {permit.reservation}  {given.tokens} tokens  waited {now - asked:.3f} s", flush=True)
        permit.settle(given.tokens, 0)


if __name__ == "__main__":
    main()
