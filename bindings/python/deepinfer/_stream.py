"""Requests of asyncio programs."""

import asyncio

from ._deepinfer import OutputDelta, RequestOutput


class OutputStream:
    """A request whose deltas `async for` gives; see LLM.stream.

    Belongs to the event loop that ran when it was made. The request is cancelled when the stream
    is closed (by aclose(), or as `async with`) or nobody refers to it any more.
    """

    def __init__(self, llm, prompt, sampling_params, options):
        loop = asyncio.get_running_loop()
        self._deltas = deltas = asyncio.Queue()

        def on_output(delta):
            # No reference to the stream, so that it can be dropped while this waits for a call.
            try:
                loop.call_soon_threadsafe(deltas.put_nowait, delta)
            except RuntimeError:  # the loop is closed: nobody can wait for more
                pass

        self._handle = None
        self._handle = llm.submit(prompt, sampling_params, on_output=on_output, **options)
        self._open_choices = 1 if sampling_params is None else sampling_params.n

    @property
    def id(self) -> int:
        """Names the request in its output."""
        return self._handle.id

    def __aiter__(self):
        return self

    async def __anext__(self) -> OutputDelta:
        if self._open_choices == 0:
            raise StopAsyncIteration
        delta = await self._deltas.get()
        if delta.finish_reason is not None:
            self._open_choices -= 1
        return delta

    async def wait(self) -> RequestOutput:
        """Waits until all choices have ended, and takes the deltas that are left."""
        async for _ in self:
            pass
        return self._handle.snapshot()

    def snapshot(self) -> RequestOutput:
        """What there is so far."""
        return self._handle.snapshot()

    def cancel(self) -> None:
        """Ends the request with "cancelled" unless it has ended; the last deltas tell so."""
        self._handle.cancel()

    async def aclose(self) -> None:
        """Cancels the request and ends the iteration."""
        self.cancel()
        self._open_choices = 0

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self._handle.cancel()
