"""Engines that end while requests, callbacks and waiting threads still use them."""

import gc
import os
import subprocess
import sys
import threading
import unittest

from support import ENDLESS, NANO, main, open_llm, wait_until

import deepinfer
from deepinfer import SamplingParams


class Lifetime(unittest.TestCase):
    def test_closing_ends_what_runs_and_what_waits(self):
        llm = open_llm(max_num_seqs=2)
        outputs = []
        thread = threading.Thread(
            target=lambda: outputs.extend(llm.generate(["It was"] * 4, ENDLESS)))
        thread.start()
        wait_until(lambda: llm.stats().running == 2)
        llm.close()
        thread.join()
        self.assertEqual([output.outputs[0].finish_reason for output in outputs],
                         ["cancelled"] * 4)
        llm.close()
        self.assertTrue(llm.closed)
        for call in (lambda: llm.generate("a"), lambda: llm.submit("a"), llm.stats,
                     lambda: llm.tokenize("a"), lambda: llm.max_model_len):
            with self.assertRaises(deepinfer.Error) as caught:
                call()
            self.assertEqual(caught.exception.kind, "cancelled")

    def test_a_with_block_closes_the_engine(self):
        with open_llm() as llm:
            handle = llm.submit("It was", ENDLESS)
        self.assertEqual(handle.wait().outputs[0].finish_reason, "cancelled")
        self.assertTrue(llm.closed)

    def test_an_engine_lives_as_long_as_its_handles(self):
        handle = open_llm().submit("It was", SamplingParams(max_tokens=3))
        gc.collect()
        self.assertEqual(handle.wait().outputs[0].finish_reason, "length")

    def test_an_engine_that_nobody_refers_to_ends_with_callbacks_in_flight(self):
        reasons = []
        llm = open_llm()
        handle = llm.submit("It was", ENDLESS, on_output=lambda d: reasons.append(d.finish_reason))
        wait_until(lambda: reasons)
        del llm, handle
        gc.collect()
        wait_until(lambda: reasons[-1] == "cancelled")

    def test_the_last_reference_may_go_in_a_callback(self):
        reasons = []
        box = [open_llm()]
        may_drop = threading.Event()

        def drop(delta):
            may_drop.wait()
            box.clear()
            reasons.append(delta.finish_reason)

        box[0].submit("It was", ENDLESS, on_output=drop)
        may_drop.set()
        wait_until(lambda: reasons and reasons[-1] == "cancelled")

    def test_closing_in_a_callback_is_refused(self):
        messages = []

        def close(delta):
            try:
                llm.close()
            except deepinfer.Error as error:
                messages.append(str(error))

        with open_llm() as llm:
            llm.submit("It was", SamplingParams(max_tokens=1), on_output=close).wait()
            wait_until(lambda: messages)
        self.assertIn("callback", messages[0])

    def test_a_callback_is_given_up_after_the_last_delta(self):
        class Function:
            def __call__(self, delta):
                pass

            def __del__(self):
                gone.set()

        gone = threading.Event()
        with open_llm() as llm:
            handle = llm.submit("It was", SamplingParams(max_tokens=1), on_output=Function())
            self.assertTrue(gone.wait(60))
            handle.wait()

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_process_is_told_that_it_has_no_engine(self):
        with open_llm() as llm:
            child = os.fork()
            if child == 0:
                try:
                    llm.generate("a")
                except deepinfer.Error as error:
                    llm.close()
                    os._exit(0 if "fork" in str(error) else 1)
                os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            llm.generate("a", SamplingParams(max_tokens=1))

    def test_the_interpreter_ends_with_everything_in_flight(self):
        setup = (f"import threading, time, deepinfer\n"
                 f"llm = deepinfer.LLM({str(NANO)!r})\n"
                 f"endless = deepinfer.SamplingParams(max_tokens=1 << 20, ignore_eos=True)\n"
                 f"seen = []\n"
                 f"handle = llm.submit('It was', endless, on_output=seen.append)\n"
                 f"def wait():\n"
                 f"  while True:\n"
                 f"    llm.generate('It was', endless)\n"
                 f"def start():\n"
                 f"  try:\n"
                 f"    wait()\n"
                 f"  except deepinfer.Error:\n"
                 f"    pass\n"
                 f"threading.Thread(target=start, daemon=True).start()\n"
                 f"while llm.stats().running < 2 or not seen: time.sleep(0.001)\n")
        for ending, code in (("", 0), ("raise SystemExit(3)\n", 3), ("1 / 0\n", 1),
                             ("llm.self = llm; del handle\n", 0)):
            with self.subTest(ending=ending):
                done = subprocess.run([sys.executable, "-c", setup + ending], text=True,
                                      capture_output=True, timeout=120, check=False)
                self.assertEqual(done.returncode, code, done.stderr)
                if code != 1:
                    self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    main()
