#include "actors/session/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// The length of the longest end of `text` with which `stop` begins, shorter than `stop`.
std::size_t overlap(std::string_view text, std::string_view stop) {
  for (auto n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.substr(text.size() - n) == stop.substr(0, n))
      return n;
  return 0;
}

} // namespace

stop_matcher::stop_matcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& s) { return s.empty(); });
}

stop_matcher::output stop_matcher::push(std::string_view text) {
  if (stops_.empty())
    return {std::string(text), false};
  held_ += text;

  auto first_end = std::string::npos;
  auto cut = std::string::npos;
  for (const auto& stop : stops_) {
    const auto at = held_.find(stop);
    if (at == std::string::npos)
      continue;
    const auto end = at + stop.size();
    if (end < first_end || (end == first_end && at < cut)) {
      first_end = end;
      cut = at;
    }
  }
  if (cut != std::string::npos) {
    held_.resize(cut);
    return {std::exchange(held_, {}), true};
  }

  std::size_t keep = 0;
  for (const auto& stop : stops_)
    keep = std::max(keep, overlap(held_, stop));
  output out{held_.substr(0, held_.size() - keep), false};
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string stop_matcher::finish() {
  return std::exchange(held_, {});
}

} // namespace troupe
