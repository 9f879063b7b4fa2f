"""LLM.stream in asyncio programs."""

import asyncio
import gc
import unittest

from support import ENDLESS, NANO, main, open_llm, wait_until

import deepinfer
from deepinfer import SamplingParams


class Streams(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = open_llm()
        cls.addClassCleanup(cls.llm.close)

    async def test_several_streams_at_once_give_what_generate_gives(self):
        prompts = ["It was", "Once upon a time", "The", "In the morning"]
        params = SamplingParams(max_tokens=16)
        running = 0
        most = 0

        async def text(prompt):
            nonlocal running, most
            parts = []
            running += 1
            async for delta in self.llm.stream(prompt, params):
                most = max(most, running)
                parts.append(delta.text)
            running -= 1
            return "".join(parts)

        texts = await asyncio.gather(*map(text, prompts))
        expected = [output.outputs[0].text for output in self.llm.generate(prompts, params)]
        self.assertEqual(texts, expected)
        self.assertEqual(most, 4)

    async def test_choices_of_one_request_come_mixed_and_end_once(self):
        ended = []
        stream = self.llm.stream("It was", SamplingParams(n=3, temperature=1, max_tokens=6))
        async for delta in stream:
            if delta.finish_reason:
                ended.append(delta.index)
        self.assertEqual(sorted(ended), [0, 1, 2])
        self.assertTrue(stream.snapshot().finished)
        with self.assertRaises(StopAsyncIteration):
            await anext(stream)

    async def test_waiting_for_the_output_leaves_the_loop_free(self):
        long = self.llm.stream("It was", ENDLESS)
        waiting = asyncio.create_task(long.wait())
        short = await self.llm.stream("Once", SamplingParams(max_tokens=4), priority=1,
                                      deadline=1e6, cache_salt="a").wait()
        self.assertEqual(short.outputs[0].finish_reason, "length")
        self.assertEqual(short.usage.completion_tokens, 4)
        self.assertFalse(waiting.done())
        long.cancel()
        self.assertEqual((await waiting).outputs[0].finish_reason, "cancelled")

    async def test_a_stream_that_is_left_cancels_its_request(self):
        async with self.llm.stream("It was", ENDLESS) as stream:
            async for _ in stream:
                break
        async for _ in self.llm.stream("It was", ENDLESS):
            break
        gc.collect()
        await asyncio.to_thread(wait_until, lambda: self.llm.stats().running == 0)

        task = asyncio.create_task(self.llm.stream("It was", ENDLESS).wait())
        await asyncio.sleep(0.02)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        await asyncio.to_thread(wait_until, lambda: self.llm.stats().running == 0)

    async def test_what_is_not_allowed_raises_at_once(self):
        for call in (lambda: self.llm.stream("It was", SamplingParams(n=0)),
                     lambda: self.llm.stream(""), lambda: self.llm.stream("a", 5),
                     lambda: self.llm.stream("a", priority=5000)):
            with self.assertRaises(deepinfer.InvalidArgumentError):
                call()

    async def test_closing_the_engine_ends_streams(self):
        llm = deepinfer.LLM(NANO)
        stream = llm.stream("It was", ENDLESS)
        await anext(stream)
        await asyncio.to_thread(llm.close)
        self.assertEqual((await stream.wait()).outputs[0].finish_reason, "cancelled")


class Loops(unittest.TestCase):
    def test_a_loop_that_ends_leaves_the_engine_usable(self):
        with open_llm() as llm:
            async def leave():
                return llm.stream("It was", ENDLESS)

            stream = asyncio.run(leave())
            wait_until(lambda: len(stream.snapshot().outputs[0].token_ids) > 3)
            stream.cancel()
            wait_until(lambda: llm.stats().running == 0)
            self.assertEqual(llm.generate("It was", SamplingParams(max_tokens=1))[0]
                             .outputs[0].text, " a")

    def test_a_stream_needs_a_running_loop(self):
        with open_llm() as llm, self.assertRaises(RuntimeError):
            llm.stream("It was")


if __name__ == "__main__":
    main()
