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


    def test_a_line_beyond_the_limit_is_named_and_the_rest_is_read(self):
        saved = self.folder / "chat.json"
        done = run("chat", stdin=b"x" * ((64 << 20) + 1) + f"\n/save {saved}\n".encode())
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"more than the allowed {64 << 20} bytes", done.err)
        self.assertEqual(json.loads(saved.read_text())["messages"], [])


class OnATerminal(ProgramTest):
    def start(self, *args, **variables):
        try:
            self.terminal, inner = pty.openpty()
        except OSError as error:
            self.skipTest(f"this system gives no terminal: {error}")
        self.process = subprocess.Popen(
            [program.BINARY, "chat", *args], stdin=inner, stdout=inner, stderr=inner,
            env=environment(TERM="xterm", **variables), start_new_session=True,
            preexec_fn=lambda: os.set_inheritable(inner, True))
        os.close(inner)
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(lambda: self.process.poll() is None and self.process.kill())
        self.shown = b""

    def wait_for(self, text, seconds=300):
        end = time.monotonic() + seconds
        while text.encode() not in self.shown:
            self.assertLess(time.monotonic(), end, f"no {text!r} in {self.shown!r}")
            if select.select([self.terminal], [], [], min(1, seconds))[0]:
                self.shown += os.read(self.terminal, 4096)
        self.shown = self.shown[self.shown.index(text.encode()) + len(text):]

    def send(self, text):
        os.write(self.terminal, text.encode())

    def interrupt_until(self, text, every=2):
        # A signal between two reads of the editor only takes effect at the next one.
        for _ in range(int(120 / every)):
            self.process.send_signal(signal.SIGINT)
            try:
                return self.wait_for(text, seconds=every)
            except AssertionError:
                continue
        self.fail(f"no {text!r} after Ctrl-C; shown: {self.shown!r}")

    def test_ctrl_c_stops_the_answer_and_returns_to_the_prompt(self):
        # At this temperature the answer is noise that does not end by itself.
        self.start("--thinking", "--temperature", "100", "--max-tokens", "8000")
        self.wait_for("> ", seconds=60)
        self.interrupt_until("> ")
        self.send("Hello\r")
        self.wait_for("\x1b[2m", seconds=60)
        self.interrupt_until("[stopped]")
        self.wait_for("> ", seconds=60)

    def saved_messages(self):
        path = self.folder / "chat.json"
        # A late Ctrl-C of interrupt_until discards the line that is being typed: then again.
        for _ in range(12):
            self.send(f"/save {path}\r")
            self.send("/nonsense\r")  # its error says that the file is there
            try:
                self.wait_for("no command", seconds=10)
            except AssertionError:
                continue
            if path.exists():
                return json.loads(path.read_text())["messages"]
        self.fail(f"/save wrote nothing; shown: {self.shown!r}")

    def test_typed_characters_arrive_in_every_locale(self):
        typed = "Häuser 世界 😀 end"
        for locale in ("", "C", "C.UTF-8", "POSIX"):
            self.start("--max-tokens", "1", LC_ALL=locale, LC_CTYPE=locale, LANG=locale)
            self.wait_for("> ", seconds=60)
            self.send(typed + "\r")
            self.wait_for("cut off", seconds=60)
            self.assertEqual(self.saved_messages()[0], {"role": "user", "content": typed}, locale)
            self.process.kill()
            self.process.wait()

    def test_ctrl_c_before_the_answer_drops_the_message(self):
        # Long enough that the answer is still seconds away when the signal comes.
        self.start("--threads", "1", "--max-num-seqs", "1", "--max-num-batched-tokens", "129",
                   "--prefix-caching", "off", "--system", "1 2 3 4 " * 900)
        self.wait_for("> ", seconds=60)
        self.send("Hello\r")
        self.wait_for("Hello", seconds=60)
        self.wait_for("\n", seconds=60)
        self.interrupt_until("the message is dropped", every=0.2)
        self.assertEqual([m["role"] for m in self.saved_messages()], ["system"])


if __name__ == "__main__":
    main()
