// A line of `deepinfer generate --jsonl` may be anything: it is read or refused, and its prompt can
// be rendered or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chat/encode.h"
#include "engine/request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string id = deepinfer::RequestId(line);
  deepinfer::RequestDefaults defaults;
  defaults.system = "system";
  const auto request = deepinfer::ParseRequest(line, defaults);
  if (!request) {
    deepinfer::ErrorJson(id, 1, request.error());
    return 0;
  }
  deepinfer::ResponseJson(*request, deepinfer::Completion{});
  if (const auto* chat = std::get_if<deepinfer::ChatRequest>(&request->prompt)) {
    if (const auto encoded = deepinfer::EncodePrompt(*chat)) (void)encoded->Text();
  }
  return 0;
}
