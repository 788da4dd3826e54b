#include "tests/golden/tokenizer_corpus.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/random.hpp"
#include "model/unicode.hpp"

namespace troupe::testing {
namespace {

std::string unescape(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    switch (line[++i]) {
    case 'n': out += '\n'; break;
    case 't': out += '\t'; break;
    case 'r': out += '\r'; break;
    case '\\': out += '\\'; break;
    case 'u':
      unicode::append_utf8(out, static_cast<char32_t>(std::stoul(std::string(line.substr(i + 1, 4)), nullptr, 16)));
      i += 4;
      break;
    default: throw std::runtime_error("unknown escape in the corpus parts");
    }
  }
  return out;
}

// The draws of one block, in order.
class draws {
public:
  explicit draws(std::uint64_t block) : state_(block << 32) {}
  std::uint64_t pick(std::uint64_t n) { return mix64(state_++) % n; }
  const std::string& one_of(const std::vector<std::string>& items) { return items[pick(items.size())]; }
  std::string several(const std::vector<std::string>& items, std::uint64_t least, std::uint64_t spread) {
    std::string out;
    for (std::uint64_t left = least + pick(spread); left > 0; --left)
      out += one_of(items);
    return out;
  }

private:
  std::uint64_t state_;
};

} // namespace

tokenizer_corpus::tokenizer_corpus() {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/tokenizer_corpus_parts.txt");
  if (!file)
    throw std::runtime_error("tests/golden/tokenizer_corpus_parts.txt is absent");
  strings ranges, end;
  const std::map<std::string, strings*> sections{{"english", &english_}, {"chinese", &chinese_}, {"code", &code_},
                                                 {"emoji", &emoji_},     {"space", &space_},     {"added", &added_},
                                                 {"marks", &marks_},     {"ranges", &ranges},    {"end", &end}};
  strings* section = &end;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("%% "))
      section = sections.at(line.substr(3));
    else
      section->push_back(unescape(line));
  }
  for (const auto& range : ranges) {
    std::istringstream numbers(range);
    std::uint32_t first = 0, last = 0;
    numbers >> std::hex >> first >> last;
    ranges_.emplace_back(first, last);
  }
}

std::string tokenizer_corpus::block(std::uint64_t number) const {
  draws d(number);
  std::string out;
  const auto append = [&out](std::uint64_t code) { unicode::append_utf8(out, static_cast<char32_t>(code)); };
  while (out.size() < block_bytes) {
    const auto kind = d.pick(100);
    if (kind < 30) {
      const auto words = 4 + d.pick(16);
      for (std::uint64_t i = 0; i < words; ++i)
        out += (i == 0 ? "" : " ") + d.one_of(english_);
      out += d.one_of({". ", ", ", "\n", "! ", "? "});
    } else if (kind < 50) {
      out += d.several(chinese_, 3, 20);
    } else if (kind < 65) {
      out += d.several(code_, 1, 6);
    } else if (kind < 72) {
      out += d.several(emoji_, 1, 5);
    } else if (kind < 80) {
      out += d.several(space_, 1, 6);
    } else if (kind < 84) {
      out += d.several(added_, 1, 3);
    } else if (kind < 90) {
      out += d.several(marks_, 1, 6);
    } else if (kind < 96) {
      for (auto left = 1 + d.pick(12); left > 0; --left) {
        const auto [first, last] = ranges_[d.pick(ranges_.size())];
        append(first + d.pick(last - first + 1));
      }
    } else if (kind < 98) {
      append('a' + d.pick(26));
      for (auto left = 1 + d.pick(5); left > 0; --left)
        append(0x300 + d.pick(0x70));
    } else {
      const std::string unit = d.one_of({"a", "A", "0", " ", "\n", "-", "=", "你"});
      for (auto left = 1 + d.pick(200); left > 0; --left)
        out += unit;
    }
    if (d.pick(4) == 0)
      out += ' ';
  }
  return out;
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : bytes)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

std::uint64_t fnv1a(const std::vector<token_id>& ids) {
  std::string bytes;
  for (const token_id id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(static_cast<std::uint32_t>(id) >> shift);
  return fnv1a(bytes);
}

} // namespace troupe::testing
