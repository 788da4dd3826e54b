#include "model/tokenizer_added.hpp"

#include <algorithm>

namespace troupe {

bool added_tokens::add(std::string text, token_id id) {
  if (text.empty() || !ids_.try_emplace(text, id).second)
    return false;
  entries_.push_back({std::move(text), id});
  return true;
}

void added_tokens::seal() {
  const auto first_byte = [](const entry& e) { return static_cast<unsigned char>(e.text.front()); };
  std::sort(entries_.begin(), entries_.end(), [&](const entry& a, const entry& b) {
    return first_byte(a) != first_byte(b) ? first_byte(a) < first_byte(b) : a.text.size() > b.text.size();
  });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto& range = ranges_[first_byte(entries_[i])];
    if (range.second == 0)
      range.first = i;
    range.second = i + 1;
  }
}

token_id added_tokens::id_of(std::string_view text) const noexcept {
  const auto it = ids_.find(text);
  return it == ids_.end() ? -1 : it->second;
}

tokenizer::added_match added_tokens::find(std::string_view text, std::size_t from) const noexcept {
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto [begin, end] = ranges_[static_cast<unsigned char>(text[at])];
    for (std::size_t i = begin; i < end; ++i)
      if (text.substr(at).starts_with(entries_[i].text))
        return {at, entries_[i].text.size(), entries_[i].id};
  }
  return {text.size(), 0, -1};
}

} // namespace troupe
