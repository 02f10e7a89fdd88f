"""Run with `python3 -m unittest` in this folder; needs no Redis."""

import re
import unittest
from unittest import mock

import tidegate_quota
from tidegate_quota import LUA, Answer, Limits, Quota, Refused, Ticket, micros, pack, script, spent, unpack


class Packing(unittest.TestCase):
    def test_numbers_are_little_endian_doubles(self) -> None:
        self.assertEqual(pack(1, 0.5), bytes.fromhex("000000000000f03f000000000000e03f"))

    def test_seconds_are_whole_microseconds(self) -> None:
        self.assertEqual((micros(60.5), micros(0.1 + 0.2)), (60_500_000, 300_000))

    def test_a_quota_is_seven_numbers_and_two_for_each_lane(self) -> None:
        block = Limits(tokens_per_day=7).pack([(0.75, 1.0), (0.25, 0.5)], began=2.0)
        *head, fingerprint, began = unpack(block)[:7]
        self.assertEqual((head, began), ([60_500_000, 120_000_000, 0, 7, 0], 2_000_000))
        self.assertEqual(unpack(block)[7:], (0.75, 1.0, 0.25, 0.5))
        self.assertNotEqual(fingerprint, unpack(Limits(tokens_per_day=8).pack([]))[5])

    def test_a_first_plan_is_an_even_pace(self) -> None:
        plan = unpack(Limits(requests=500, combined=200_000, concurrent=40, window=50.0).first_plan(3, 9))
        self.assertEqual(plan[:5], (3, 0, 9, 50_000_000, 40))
        self.assertEqual(plan[5:10], (490 / 50e6, 490 * 0.05, 490, 490, 0))
        self.assertEqual(plan[10:20], (0,) * 10)
        self.assertEqual(plan[20:], (196_000 / 50e6, 196_000 * 0.05, 196_000, 196_000, 0))

    def test_a_limit_is_never_rounded_to_none_and_a_lease_outlives_the_window(self) -> None:
        limits = Limits(requests=1, window=100.0)
        self.assertEqual((unpack(limits.pack([]))[1], unpack(limits.first_plan(0, 0))[8]), (150_000_000, 1))

    def test_a_call_counts_in_four_dimensions(self) -> None:
        self.assertEqual(spent(30, 12), (1, 30, 12, 42))


class Scripts(unittest.TestCase):
    def test_they_are_joined_as_the_document_says(self) -> None:
        files = sorted(LUA.glob("*.lua"))
        self.assertIn("reserve-7", [file.stem for file in files])
        for file in files:
            own = file.read_bytes()
            lines = [line for line in own.decode().splitlines() if "@include" in line]
            parts = [line.removeprefix('--- @include "').removesuffix('"') for line in lines]
            self.assertEqual(script(file.stem), b"".join((LUA / f"{part}.lua").read_bytes() for part in parts) + own)
        self.assertIn('`--- @include "include/state"`', (LUA / "README.md").read_text())

    def test_a_constant_is_defined_before_it_is_used(self) -> None:
        for file in LUA.glob("*.lua"):
            code = re.sub(r"--\[\[[\s\S]*?\]\]|--.*|'[^'\n]*'", "", script(file.stem).decode())
            known = {"KEYS", "ARGV"}
            for line in code.splitlines():
                defined = re.match(r"\s*local ([A-Z_, ]+)=", line)
                known |= set(re.findall(r"[A-Z_]+", defined.group(1))) if defined else set()
                unknown = set(re.findall(r"(?<![\w.])[A-Z][A-Z_]+\b(?!\()", line)) - known
                self.assertEqual(unknown, set(), f"{file.name}: {line}")

    def test_a_text_is_its_parts_and_then_itself(self) -> None:
        text = script("renew-1")
        self.assertTrue(text.startswith((LUA / "include" / "numbers.lua").read_bytes()))
        self.assertTrue(text.endswith((LUA / "renew-1.lua").read_bytes()))


class Waiting(unittest.TestCase):
    def setUp(self) -> None:
        self.quota = Quota("redis://127.0.0.1:1", "test:model", Limits(requests=1), jitter=0.0)
        self.sleeps = self.started(mock.patch.object(tidegate_quota.time, "sleep"))

    def started(self, context: "mock._patch") -> mock.MagicMock:
        self.addCleanup(context.stop)
        return context.start()

    def test_a_refused_caller_comes_back_with_its_ticket(self) -> None:
        answers = [Answer(2, 100_000, 4, 9, 77, 5, 0, 0), Answer(3, 50_000, 0, 0, 0, 0, 0, 0), Answer(1, 0, 0, 0, 0, 0, 0, 0)]
        with mock.patch.object(self.quota, "reserve", side_effect=answers) as reserve:
            self.quota.admit("a")
        self.assertEqual([call.args[5] for call in reserve.call_args_list], [None, Ticket(77, 5), Ticket(77, 5)])
        self.assertEqual([call.args[0] for call in self.sleeps.call_args_list], [0.1, 0.05])

    def test_a_long_wait_is_cut_short_and_one_beyond_the_limit_is_handed_back(self) -> None:
        answers = [Answer(2, 4_000_000, 6, 0, 77, 5, 0, 0), Answer(2, 60_000_000, 6, 0, 77, 5, 0, 0)]
        with mock.patch.object(self.quota, "reserve", side_effect=answers), self.assertRaises(Refused) as refused:
            self.quota.admit("a", max_wait=30.0)
        self.assertEqual(self.sleeps.call_args.args[0], 3.8)
        self.assertEqual((refused.exception.ticket, refused.exception.wait), (Ticket(77, 5), 60.0))

    def test_what_never_fits_is_not_waited_for(self) -> None:
        with mock.patch.object(self.quota, "reserve", return_value=Answer(4, 0, 4, 1_000, 0, 0, 0, 0)):
            with self.assertRaisesRegex(Refused, "1000 tokens is the most"):
                self.quota.admit("a")
        self.sleeps.assert_not_called()

    def test_what_calls_really_use_is_reserved_for_the_next(self) -> None:
        granted = Answer(1, 0, 0, 0, 0, 0, 1_500_000, 20)
        with mock.patch.object(self.quota, "reserve", return_value=granted) as reserve:
            self.quota.admit("a", input_tokens=100, max_output_tokens=100)
            self.quota.admit("b", input_tokens=101, max_output_tokens=100)
        self.assertEqual([call.args[1] for call in reserve.call_args_list], [(1, 100, 34, 134), (1, 152, 20, 172)])


if __name__ == "__main__":
    unittest.main()
