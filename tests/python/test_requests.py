"""LLM.submit: streaming, callbacks, cancelling, deadlines, and what other threads see."""

import os
import signal
import sys
import threading

from support import ENDLESS, EngineTest, main, open_llm, wait_until

import deepinfer
from deepinfer import SamplingParams


class Requests(EngineTest):
    def test_deltas_add_up_to_the_output(self):
        params = SamplingParams(max_tokens=12, n=3, temperature=1.2, logprobs=0)
        handle = self.llm.submit("It was", params)
        texts, tokens, reasons = [""] * 3, [[], [], []], {}
        for delta in handle:
            self.assertNotIn(delta.index, reasons)
            texts[delta.index] += delta.text
            tokens[delta.index] += delta.token_ids
            self.assertEqual(len(delta.logprobs), len(delta.token_ids))
            if delta.finish_reason:
                reasons[delta.index] = delta.finish_reason
        output = handle.wait()
        self.assertEqual(texts, [choice.text for choice in output.outputs])
        self.assertEqual(tokens, [choice.token_ids for choice in output.outputs])
        self.assertEqual(reasons, {i: choice.finish_reason
                                   for i, choice in enumerate(output.outputs)})
        self.assertIsNone(handle.next())
        self.assertTrue(handle.finished)
        self.assertEqual(output.request_id, handle.id)
        self.assertEqual(texts[0], self.llm.generate("It was", params)[0].outputs[0].text)

    def test_a_callback_gets_every_delta_in_order(self):
        deltas = []
        handle = self.llm.submit("It was", SamplingParams(max_tokens=12), on_output=deltas.append)
        output = handle.wait().outputs[0]
        wait_until(lambda: deltas and deltas[-1].finish_reason)
        self.assertEqual("".join(delta.text for delta in deltas), output.text)
        with self.assertRaisesRegex(deepinfer.Error, "on_output"):
            handle.next()

    def test_a_callback_that_raises_ends_its_request_alone(self):
        seen = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda event: seen.append(event.exc_type)

        def fail(delta):
            raise LookupError("no place for it")

        beside = self.llm.submit("Once", SamplingParams(max_tokens=12))
        output = self.llm.submit("It was", ENDLESS, on_output=fail).wait().outputs[0]
        self.assertEqual(output.finish_reason, "error")
        self.assertIn("LookupError: no place for it", output.error)
        self.assertEqual(beside.wait().outputs[0].finish_reason, "length")
        self.assertEqual(seen, [LookupError])

    def test_a_cancelled_request_keeps_what_it_has(self):
        handle = self.llm.submit("It was", ENDLESS)
        first = handle.next()
        self.assertFalse(handle.finished)
        handle.cancel()
        output = handle.wait().outputs[0]
        self.assertEqual(output.finish_reason, "cancelled")
        self.assertTrue(output.text.startswith(first.text))
        handle.cancel()

    def test_a_deadline_ends_a_request(self):
        self.assertEqual(self.llm.submit("It was", ENDLESS, deadline=0).wait().outputs[0]
                         .finish_reason, "deadline")
        later = self.llm.submit("It was", ENDLESS, deadline=0.05).wait().outputs[0]
        self.assertEqual(later.finish_reason, "deadline")
        in_time = self.llm.submit("It was", SamplingParams(max_tokens=2), deadline=1e9).wait()
        self.assertEqual(in_time.outputs[0].finish_reason, "length")

    def test_a_timeout_leaves_the_request_running(self):
        handle = self.llm.submit("It was", ENDLESS)
        with self.assertRaises(TimeoutError):
            handle.wait(timeout=0.001)
        self.assertFalse(handle.snapshot().finished)
        while handle.next().finish_reason is None and len(handle.snapshot().outputs[0].text) < 20:
            pass
        handle.cancel()
        handle.wait()
        waiting = open_llm(max_num_seqs=1)
        self.addCleanup(waiting.close)
        running = waiting.submit("It was", ENDLESS)
        behind = waiting.submit("It was", SamplingParams(max_tokens=1))
        with self.assertRaises(TimeoutError):
            behind.next(timeout=0.001)
        running.cancel()
        self.assertEqual(behind.next(timeout=60).text, " a")

    def test_a_higher_priority_goes_first(self):
        llm = open_llm(max_num_seqs=1)
        self.addCleanup(llm.close)
        order = []
        running = llm.submit("It was", ENDLESS)
        running.next()
        handles = [llm.submit("Once", SamplingParams(max_tokens=1), priority=priority,
                              on_output=lambda delta, p=priority: order.append(p))
                   for priority in (-5, 0, 1000)]
        running.cancel()
        for handle in handles:
            handle.wait()
        wait_until(lambda: len(order) == 3)
        self.assertEqual(order, [1000, 0, -5])


class Threads(EngineTest):
    def test_other_threads_run_while_one_waits(self):
        for wait in (lambda handle: handle.wait(), lambda handle: list(handle)):
            handle = self.llm.submit("It was", ENDLESS)
            thread = threading.Thread(target=handle.cancel)
            started = threading.Timer(0.02, thread.start)
            started.start()
            wait(handle)  # with the GIL held, nobody could cancel
            self.assertEqual(handle.wait().outputs[0].finish_reason, "cancelled")
            started.join()
            thread.join()

    def test_threads_share_an_engine(self):
        expected = {seed: self.llm.generate("It was", self.params(seed))[0].outputs[0].text
                    for seed in range(4)}
        got = {}

        def work(seed):
            got[seed] = self.llm.generate("It was", self.params(seed))[0].outputs[0].text

        threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, expected)

    @staticmethod
    def params(seed):
        return SamplingParams(temperature=1.3, max_tokens=10, seq_seed=seed)

    def test_ctrl_c_ends_generate_and_its_requests(self):
        def interrupt():
            wait_until(lambda: self.llm.stats().running == 2)
            os.kill(os.getpid(), signal.SIGINT)

        for call in (lambda: self.llm.generate(["It was", "Once"], ENDLESS),
                     lambda: self.wait_for_two()):
            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                call()
            thread.join()
            wait_until(lambda: self.llm.stats().running == 0)
        self.assertEqual(self.llm.generate("It was", SamplingParams(max_tokens=1))[0]
                         .outputs[0].text, " a")

    def wait_for_two(self):
        handles = [self.llm.submit("It was", ENDLESS) for _ in range(2)]
        try:
            handles[0].wait()
        finally:
            for handle in handles:
                handle.cancel()


if __name__ == "__main__":
    main()
