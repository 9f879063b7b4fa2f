// The tool markup (DSML) of an output (spec chat sections 3 and 4). Internal to src/chat.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "chat/output_event.h"

namespace deepinfer {

inline constexpr std::string_view kDsmlOpen = "<｜DSML｜";
inline constexpr std::string_view kDsmlClose = "</｜DSML｜";

// What follows kDsmlOpen or kDsmlClose: a space or none, then a word.
class TagWord {
 public:
  // False: `byte` is no part of it.
  bool Feed(char byte);
  void Clear() { text_.clear(); }
  bool spaced() const { return !text_.empty() && text_[0] == ' '; }
  std::string_view word() const { return std::string_view(text_).substr(spaced() ? 1 : 0); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Whether an opening tag's word and the byte after it make a tag that may open a block: an invoke,
// or an outer tag of any name. A parameter counts too; the block parser then refuses it.
bool OpensBlock(const TagWord& word, char next);

// Reads one block of calls, beginning after its first kDsmlOpen. Fed with valid UTF-8, byte by
// byte. Appends events; the last one may be kError, after which it takes nothing more. Copyable.
class ToolBlockParser {
 public:
  void Feed(char byte, std::vector<OutputEvent>& events);
  // The output has ended.
  void Finish(std::vector<OutputEvent>& events);

  // False: the block is complete or failed, and what follows it is dropped.
  bool open() const { return state_ != State::kClosed && state_ != State::kFailed; }
  bool failed() const { return state_ == State::kFailed; }

 private:
  enum class State {
    kOpeningTag,  // after kDsmlOpen
    kClosingTag,  // after kDsmlClose
    kInvokeName,
    kParameterName,
    kValue,
    kBetweenTags,
    kClosed,
    kFailed,
  };

  void FeedTag(char byte);
  void FeedOpeningTag(char byte);
  void FeedClosingTag();
  void FeedInvokeName(char byte);
  void FeedParameterName(char byte);
  void FeedValue(char byte);
  void FeedBetweenTags(char byte);
  bool FeedAttributePrefix(char byte, OutputErrorKind error);

  void BeginParameter(std::string_view name, bool is_string);
  void AddValue(std::string_view text);
  void EndValue();
  void Misplaced(std::string_view what);
  void EndOfOutput();
  void AddArguments(std::string_view text);
  void Fail(OutputErrorKind kind, std::string_view detail);

  std::vector<OutputEvent>* events_ = nullptr;  // during Feed and Finish
  State state_ = State::kOpeningTag;
  bool has_wrapper_ = false;  // an outer tag is open
  bool has_call_ = false;     // a call is complete
  bool in_invoke_ = false;
  TagWord word_;
  std::string marker_;         // bytes where a tag must stand that may become a marker
  std::string attribute_;      // of the tag being read, after name="
  size_t prefix_matched_ = 0;  // bytes of name=" that were read
  std::string call_name_;
  std::unordered_set<std::string> parameters_;  // names in the open call
  std::string parameter_;                       // name of the open value
  bool is_string_ = false;                      // of the open value
  std::string_view closer_;                     // what ends the open value
  size_t closer_matched_ = 0;
  std::string json_;        // key and value, held until the value is checked; not for strings
  size_t value_begin_ = 0;  // in json_
};

}  // namespace deepinfer
