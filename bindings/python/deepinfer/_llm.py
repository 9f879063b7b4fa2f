"""The engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _deepinfer
from ._stream import OutputStream

if TYPE_CHECKING:
    import os

    from ._deepinfer import (Chat, Message, OutputDelta, Prompt, RequestHandle, RequestOutput,
                             SamplingParams)


class LLM(_deepinfer.LLM):
    """One checkpoint that serves any number of requests at once, from any threads.

    A prompt is text that the model continues (str), token ids (a list of int), or a chat: a list of
    messages, or a dict with "messages" and, if wanted, "tools", "mode" ("chat", "thinking"),
    "reasoning_effort" and the other keys of docs/formats.md, "Requests".

    What is not allowed raises Error before it runs; what fails on the way is the output's
    finish_reason.
    """

    def __init__(self, model: str | os.PathLike[str] | None = None, **options: Any):
        """Loads a checkpoint and reserves the engine's memory.

        model: a checkpoint's folder, or ORG/NAME in the Hugging Face cache. Without one,
        DEEPINFER_HF_MODEL_DIR, that cache and models/nano are tried.
        options: those of docs/options.md (max_num_seqs=16, prefill_mode="compact"), over their
        DEEPINFER_ variables.
        """
        super().__init__({"model": model, **options})

    def generate(self, prompts: str | Chat | Sequence[Prompt],
                 sampling_params: SamplingParams | Sequence[SamplingParams] | None = None
                 ) -> list[RequestOutput]:
        """Runs all prompts together and waits; a RequestOutput for each, in their order.

        prompts: one str or chat dict, or a list of prompts. sampling_params: one SamplingParams
        for all, or a list with one for each. Ctrl-C cancels them all.
        """
        return super().generate(prompts, sampling_params)

    def chat(self, messages: Sequence[Message] | Sequence[Sequence[Message]],
             sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
             **options: Any) -> list[RequestOutput]:
        """Answers one conversation, a list of {"role": ..., "content": ...}, or a list of such.

        options: tools, mode, reasoning_effort, ... for each of them. Returns what generate does.
        """
        several = (isinstance(messages, (list, tuple)) and len(messages) > 0
                   and not isinstance(messages[0], dict))
        chats = [{"messages": chat, **options} for chat in (messages if several else [messages])]
        return super().generate(chats, sampling_params)

    def submit(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *,
               on_output: Callable[[OutputDelta], object] | None = None, priority: int = 0,
               deadline: float | None = None, cache_salt: str = "") -> RequestHandle:
        """Starts a request and returns its RequestHandle at once.

        on_output: called with each OutputDelta on a thread of the engine. What it raises ends the
        request with finish_reason "error", and no other. priority: -1000 to 1000, higher goes
        first. deadline: seconds from now after which the request ends. cache_salt: requests of
        different salts share no cached prefixes.
        """
        return super().submit(prompt, sampling_params, on_output=on_output, priority=priority,
                              deadline=deadline, cache_salt=cache_salt)

    def stream(self, prompt: Prompt, sampling_params: SamplingParams | None = None, *,
               priority: int = 0, deadline: float | None = None, cache_salt: str = ""
               ) -> OutputStream:
        """Starts a request in an asyncio program and returns its OutputStream at once.

            async for delta in llm.stream("It was"):
                print(delta.text, end="")
        """
        return OutputStream(self, prompt, sampling_params,
                            {"priority": priority, "deadline": deadline, "cache_salt": cache_salt})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
