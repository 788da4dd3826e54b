#include "io/wire/raw_json.hpp"

namespace troupe {
namespace {

std::size_t skip_space(std::string_view s, std::size_t i) {
  while (i < s.size() && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r'))
    ++i;
  return i;
}

// The end of the string that opens at s[i].
std::size_t string_end(std::string_view s, std::size_t i) {
  for (++i; i < s.size(); ++i) {
    if (s[i] == '\\')
      ++i;
    else if (s[i] == '"')
      return i + 1;
  }
  return s.size();
}

// The end of the value that starts at s[i].
std::size_t value_end(std::string_view s, std::size_t i) {
  if (i >= s.size())
    return i;
  if (s[i] == '"')
    return string_end(s, i);
  if (s[i] != '{' && s[i] != '[') {
    while (i < s.size() && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] != ' ' && s[i] != '\n' && s[i] != '\r' &&
           s[i] != '\t')
      ++i;
    return i;
  }
  int depth = 0;
  while (i < s.size()) {
    if (s[i] == '"') {
      i = string_end(s, i);
      continue;
    }
    if (s[i] == '{' || s[i] == '[')
      ++depth;
    else if ((s[i] == '}' || s[i] == ']') && --depth == 0)
      return i + 1;
    ++i;
  }
  return i;
}

} // namespace

std::string_view raw_member(std::string_view document, std::string_view key) {
  std::size_t i = skip_space(document, 0);
  if (i >= document.size() || document[i] != '{')
    return {};
  i = skip_space(document, i + 1);
  while (i < document.size() && document[i] == '"') {
    const std::size_t name_end = string_end(document, i);
    const std::string_view name = document.substr(i + 1, name_end - i - 2);
    i = skip_space(document, name_end);
    i = skip_space(document, i + 1); // the colon
    const std::size_t end = value_end(document, i);
    if (name == key)
      return document.substr(i, end - i);
    i = skip_space(document, end);
    if (i < document.size() && document[i] == ',')
      i = skip_space(document, i + 1);
  }
  return {};
}

std::vector<std::string_view> raw_items(std::string_view array) {
  std::vector<std::string_view> items;
  std::size_t i = skip_space(array, 0);
  if (i >= array.size() || array[i] != '[')
    return items;
  i = skip_space(array, i + 1);
  while (i < array.size() && array[i] != ']') {
    const std::size_t end = value_end(array, i);
    items.push_back(array.substr(i, end - i));
    i = skip_space(array, end);
    if (i < array.size() && array[i] == ',')
      i = skip_space(array, i + 1);
  }
  return items;
}

} // namespace troupe
