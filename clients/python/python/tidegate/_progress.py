"""How far a list of prompts is, for people."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """How far it is: a bar of ``tqdm``, or a line on stderr."""

    def __init__(self, total: int, is_shown: bool) -> None:
        self._total, self._is_shown = total, is_shown
        self._done = self._failed = 0
        self._bar: Any = None
        if is_shown:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                pass
            else:
                self._bar = tqdm(total=total, unit=" prompts")

    def one_more(self, has_failed: bool) -> None:
        self._done += 1
        self._failed += has_failed
        if self._bar is not None:
            if has_failed:
                self._bar.set_postfix(failed=self._failed)
            self._bar.update()
        elif self._is_shown:
            print(f"\r{self._line()}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._is_shown:
            print(f"\r{self._line()}", file=sys.stderr)

    def _line(self) -> str:
        return f"{self._done} of {self._total} prompts, {self._failed} failed"
