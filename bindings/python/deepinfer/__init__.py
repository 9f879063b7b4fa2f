"""DeepInfer: an exact inference engine for DeepSeek-V4.1 checkpoints.

    from deepinfer import LLM, SamplingParams

    llm = LLM(model="models/nano")
    for output in llm.generate(["It was", "Once"], SamplingParams(max_tokens=16)):
        print(output.outputs[0].text)

docs/python.md tells the rest.
"""

from ._deepinfer import (
    CompletionOutput,
    EngineStats,
    Error,
    InvalidArgumentError,
    OutputDelta,
    RequestHandle,
    RequestOutput,
    RequestTimings,
    SamplingParams,
    StepTimes,
    TokenLogprob,
    TokenLogprobs,
    Usage,
    __version__,
)
from ._llm import LLM
from ._stream import OutputStream

__all__ = [
    "LLM",
    "SamplingParams",
    "RequestHandle",
    "OutputStream",
    "RequestOutput",
    "CompletionOutput",
    "OutputDelta",
    "TokenLogprob",
    "TokenLogprobs",
    "Usage",
    "RequestTimings",
    "EngineStats",
    "StepTimes",
    "Error",
    "InvalidArgumentError",
    "__version__",
]
