#include "grammar/json_schema/formats.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "grammar/json_schema/words.h"
#include "grammar/limits.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

std::string Date() {
  const std::string leap =
      "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
  return "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|"
         "30)|02-(?:0[1-9]|1\\d|2[0-8]))|" +
         leap + ")";
}

std::string Time() {
  return "(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]"
         "\\d)|23:59:60(?:\\.\\d+)?(?:[Zz]|[+-]00:00))";
}

std::string Duration() {
  const std::string time = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)";
  const std::string date = "(?:\\d+D|\\d+M(?:\\d+D)?|\\d+Y(?:\\d+M(?:\\d+D)?)?)";
  return "P(?:" + date + "(?:" + time + ")?|" + time + "|\\d+W)";
}

std::string Ipv4() {
  const std::string octet = "(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
  return octet + "(?:\\." + octet + "){3}";
}

std::string Ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  const std::string low = "(?:" + h + ":" + h + "|" + Ipv4() + ")";
  std::string all = "(?:(?:" + h + ":){6}" + low + "|::(?:" + h + ":){5}" + low;
  for (int groups = 4; groups >= 0; --groups) {
    const std::string before = "(?:(?:" + h + ":){0," + std::to_string(4 - groups) + "}" + h + ")?";
    all += "|" + before + "::(?:" + h + ":){" + std::to_string(groups) + "}" + low;
  }
  return all + "|(?:(?:" + h + ":){0,5}" + h + ")?::" + h + "|(?:(?:" + h + ":){0,6}" + h + ")?::)";
}

// `more` extends the letters beyond ASCII.
std::string Email(const std::string& more) {
  const std::string atom = "[0-9A-Za-z!#$%&'*+\\-/=?^_`{|}~" + more + "]+";
  const std::string quoted = "\"(?:[ !#-\\[\\]-~" + more + "]|\\\\[ -~])*\"";
  const std::string label = fmt::format("[{0}](?:[{0}-]*[{0}])?", "0-9A-Za-z" + more);
  return "(?:" + atom + "(?:\\." + atom + ")*|" + quoted + ")@(?:" + label + "(?:\\." + label +
         ")*|\\[(?:" + Ipv4() + "|IPv6:" + Ipv6() + ")\\])";
}

// RFC 3986, and RFC 3987 with `more` unreserved characters and `private_use` ones in queries.
std::string Uri(const std::string& more, const std::string& private_use, bool may_be_relative) {
  const std::string common = "\\-0-9A-Za-z._~!$&'()*+,;=" + more;
  const std::string escape = "%[0-9A-Fa-f]{2}";
  const auto chars = [&](const std::string& extra) {
    return "(?:[" + common + extra + "]|" + escape + ")";
  };
  const std::string segment = chars(":@") + "*";
  const std::string some = chars(":@") + "+";
  const std::string without_colon = chars("@") + "+";
  const std::string host = "(?:\\[(?:" + Ipv6() + "|[vV][0-9A-Fa-f]+\\.[" +
                           "\\-0-9A-Za-z._~!$&'()*+,;=:]+)\\]|" + chars("") + "*)";
  const std::string authority = "(?:" + chars(":") + "*@)?" + host + "(?::\\d*)?";
  const std::string rooted =
      "//" + authority + "(?:/" + segment + ")*|/(?:" + some + "(?:/" + segment + ")*)?";
  const std::string tail =
      "(?:\\?(?:" + chars(":@/?" + private_use) + ")*)?(?:#(?:" + chars(":@/?") + ")*)?";
  const std::string absolute =
      "[A-Za-z][\\-0-9A-Za-z+.]*:(?:" + rooted + "|(?:" + some + "(?:/" + segment + ")*)?)" + tail;
  if (!may_be_relative) return absolute;
  return "(?:" + absolute + "|(?:" + rooted + "|(?:" + without_colon + "(?:/" + segment + ")*)?)" +
         tail + ")";
}

std::string IriChars() {
  std::string chars = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}";
  for (int plane = 1; plane <= 14; ++plane) {
    chars +=
        fmt::format("\\u{{{:X}{}}}-\\u{{{:X}FFFD}}", plane, plane == 14 ? "1000" : "0000", plane);
  }
  return chars;
}

std::string UriTemplate() {
  const std::string name_char = "(?:[0-9A-Za-z_]|%[0-9A-Fa-f]{2})";
  const std::string name = name_char + "(?:\\.?" + name_char + ")*";
  const std::string variable = name + "(?::[1-9]\\d{0,3}|\\*)?";
  const std::string expression = "\\{[+#./;?&=,!@|]?" + variable + "(?:," + variable + ")*\\}";
  return "(?:[!#$&(-;=?-\\[\\]_a-z~'" + IriChars() +
         "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}]|%[0-9A-Fa-f]{2}|" +
         expression + ")*";
}

Dfa Compile(std::string_view pattern) {
  Budget budget{Limits()};
  return *RegexToDfa(pattern, RegexMatch::kWhole, {}, budget);
}

// Within 253 characters: few long labels or more short ones.
Dfa Hostname() {
  Budget budget{Limits()};
  const auto names = [](const std::string& letters, int length, int labels) {
    const std::string label = fmt::format("[{0}](?:[{0}-]{{0,{1}}}[{0}])?", letters, length - 2);
    return fmt::format("{0}(?:\\.{0}){{0,{1}}}", label, labels - 1);
  };
  const Dfa all = Compile(names("0-9A-Za-z", 63, 3) + "|" + names("0-9A-Za-z", 30, 8));
  const Dfa encoded = Compile("(?:[^]*\\.)?[xX][nN]--[^]*");
  return *Difference(all, encoded, budget);
}

struct Format {
  std::string_view name;
  Dfa (*make)();
};
const std::string kPointer = "(?:/(?:[^/~]|~[01])*)*";
const std::string kPrivateUse = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

constexpr std::array<Format, 17> kFormats = {{
    {"date", [] { return Compile(Date()); }},
    {"time", [] { return Compile(Time()); }},
    {"date-time", [] { return Compile(Date() + "[Tt]" + Time()); }},
    {"duration", [] { return Compile(Duration()); }},
    {"email", [] { return Compile(Email("")); }},
    {"idn-email", [] { return Compile(Email("\\u{80}-\\u{D7FF}\\u{E000}-\\u{10FFFF}")); }},
    {"hostname", Hostname},
    {"ipv4", [] { return Compile(Ipv4()); }},
    {"ipv6", [] { return Compile(Ipv6()); }},
    {"uuid", [] { return Compile("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"); }},
    {"uri", [] { return Compile(Uri("", "", false)); }},
    {"uri-reference", [] { return Compile(Uri("", "", true)); }},
    {"iri", [] { return Compile(Uri(IriChars(), kPrivateUse, false)); }},
    {"iri-reference", [] { return Compile(Uri(IriChars(), kPrivateUse, true)); }},
    {"uri-template", [] { return Compile(UriTemplate()); }},
    {"json-pointer", [] { return Compile(kPointer); }},
    {"relative-json-pointer", [] { return Compile("(?:0|[1-9]\\d*)(?:#|" + kPointer + ")"); }},
}};

struct Made {
  std::once_flag once;
  std::atomic<const Dfa*> known = nullptr;  // words, once they are made
  std::shared_ptr<const Dfa> words;
  std::shared_ptr<const Dfa> texts;
};

std::array<Made, kFormats.size()>& ByNumber() {
  static std::array<Made, kFormats.size()> made;
  return made;
}

const Made& MadeFormat(size_t number) {
  Made& made = ByNumber()[number];
  std::call_once(made.once, [&] {
    Budget budget{Limits()};
    made.words = std::make_shared<const Dfa>(kFormats[number].make());
    made.texts = std::make_shared<const Dfa>(Quoted(*EncodeCanonicalString(*made.words, budget)));
    made.known = made.words.get();
  });
  return made;
}

}  // namespace

std::shared_ptr<const Dfa> FormatWords(std::string_view format) {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == format) return MadeFormat(i).words;
  }
  return nullptr;
}

std::shared_ptr<const Dfa> FormatTexts(const Dfa* words) {
  for (const Made& made : ByNumber()) {
    if (words == made.known) return made.texts;
  }
  return nullptr;
}

bool IsUnsupportedFormat(std::string_view format) {
  return format == "regex" || format == "idn-hostname";
}

}  // namespace deepinfer::grammar
