"""deepinfer chat, through a pipe and on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import program
from program import ProgramTest, environment, main, run


class Piped(ProgramTest):
    def test_turns_see_what_was_said_before(self):
        saved = self.folder / "chat.json"
        done = run("chat", stdin=f"I have a goat.\nDo you remember my pet?\n/save {saved}\n")
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("goat", done.out.splitlines()[-1])
        messages = json.loads(saved.read_text())["messages"]
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        encoded = run("encode", saved)
        self.assertIn("<｜User｜>Do you remember my pet?", encoded.out)

    def test_commands_change_the_conversation_and_bad_ones_are_named(self):
        saved = self.folder / "chat.json"
        done = run("chat", stdin="/help\n/system Answer briefly.\n/thinking on\n/effort 20\n"
                                 f"/save {saved}\n/thinking maybe\n/effort 101\n/nonsense\n/quit\n"
                                 "never read\n")
        self.assertEqual(done.returncode, 1)  # of the bad ones
        self.assertEqual(done.out.count("\n"), 7)  # /help alone
        self.assertIn("/reset", done.out)
        state = json.loads(saved.read_text())
        self.assertEqual(state["messages"], [{"role": "system", "content": "Answer briefly."}])
        self.assertEqual((state["mode"], state["reasoning_effort"]), ("thinking", 20))
        for part in ("maybe", "101", "/nonsense"):
            self.assertIn(part, done.err)

    def test_a_broken_message_fails_at_the_end(self):
        done = run("chat", stdin=b"\xff\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("offset 0", done.err)


class OnATerminal(ProgramTest):
    def start(self, *args):
        self.terminal, inner = pty.openpty()
        self.process = subprocess.Popen(
            [program.BINARY, "chat", *args], stdin=inner, stdout=inner, stderr=inner,
            env=environment(TERM="xterm"), start_new_session=True,
            preexec_fn=lambda: os.set_inheritable(inner, True))
        os.close(inner)
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(lambda: self.process.poll() is None and self.process.kill())
        self.shown = b""

    def wait_for(self, text, seconds=300):
        end = time.monotonic() + seconds
        while text.encode() not in self.shown:
            self.assertLess(time.monotonic(), end, f"no {text!r} in {self.shown!r}")
            if select.select([self.terminal], [], [], 1)[0]:
                self.shown += os.read(self.terminal, 4096)
        self.shown = self.shown[self.shown.index(text.encode()) + len(text):]

    def send(self, text):
        os.write(self.terminal, text.encode())

    def interrupt_until(self, text):
        # A signal between two reads of the editor only takes effect at the next one.
        for _ in range(60):
            self.process.send_signal(signal.SIGINT)
            try:
                return self.wait_for(text, seconds=2)
            except AssertionError:
                continue
        self.fail(f"no {text!r} after Ctrl-C; shown: {self.shown!r}")

    def test_ctrl_c_stops_the_answer_and_ctrl_d_ends(self):
        # At this temperature the answer is noise that does not end by itself.
        self.start("--thinking", "--temperature", "100", "--max-tokens", "8000")
        self.wait_for("> ", seconds=60)
        self.interrupt_until("> ")
        self.send("Hello\r")
        self.wait_for("\x1b[2m", seconds=60)
        self.interrupt_until("[stopped]")
        self.wait_for("> ", seconds=60)
        self.send("\x04")
        self.assertEqual(self.process.wait(60), 0)


if __name__ == "__main__":
    main()
