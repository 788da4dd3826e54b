#include "app/http.hpp"

#include <curl/curl.h>

#include <memory>

#include "config/limits.hpp"

namespace troupe {
namespace {

struct call_state {
  CURL* handle = nullptr;
  http_reply answer;
  const std::function<bool(std::string_view)>* on_bytes = nullptr;
};

std::size_t take_bytes(char* data, std::size_t size, std::size_t count, void* user) {
  auto& state = *static_cast<call_state*>(user);
  const std::size_t bytes = size * count;
  long status = 0;
  curl_easy_getinfo(state.handle, CURLINFO_RESPONSE_CODE, &status);
  if (*state.on_bytes && status / 100 == 2)
    return (*state.on_bytes)({data, bytes}) ? bytes : 0;
  if (state.answer.body.size() + bytes > limits::body_bytes_max)
    return 0;
  state.answer.body.append(data, bytes);
  return bytes;
}

constexpr long stall_seconds = 900; // longer than the server lets an answer rest, and than a queue of slow ones takes

} // namespace

std::string base_url(std::string url) {
  const auto drop = [&url](std::string_view end) {
    if (url.size() > end.size() && url.compare(url.size() - end.size(), end.size(), end) == 0)
      url.resize(url.size() - end.size());
  };
  drop("/");
  drop("/v1");
  return url;
}

result<http_reply> http_call(const std::string& url, const std::string& body, const std::string& key,
                             const std::function<bool(std::string_view)>& on_bytes) {
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (!handle)
    return fail(errc::no_memory, "no memory for an HTTP client");
  call_state state{handle.get(), {}, &on_bytes};
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");
  if (!key.empty())
    headers = curl_slist_append(headers, ("Authorization: Bearer " + key).c_str());
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> owner(headers, curl_slist_free_all);
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(handle.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_LOW_SPEED_TIME, stall_seconds);
  curl_easy_setopt(handle.get(), CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &state);
  if (!body.empty()) {
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(handle.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  const CURLcode code = curl_easy_perform(handle.get());
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  state.answer.status = static_cast<int>(status);
  if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && on_bytes))
    return fail(errc::io_failed, url + ": " + curl_easy_strerror(code));
  return std::move(state.answer);
}

} // namespace troupe
