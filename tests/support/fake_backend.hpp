// A backend for tests: it keeps the tokens that a real one would keep keys and values of, page by page, and chooses the next
// token from what it finds there. So a wrong page table, a page that was given out twice, or a prefix that was shared wrongly
// changes the answer, or is a hole and fails the sequence.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/random.hpp"
#include "config/limits.hpp"
#include "model/backend.hpp"

namespace troupe::test {

// Knows all tokens so far, chooses the next.
using token_chooser = std::function<token_id(const std::vector<token_id>&, const sampling_params&)>;

// A letter or digit by the hash of all tokens and the seed.
inline token_id hashed_letter(const std::vector<token_id>& so_far, const sampling_params& sampling) {
  std::uint64_t hash = sampling.temperature == 0.0f ? 0 : sampling.seed;
  for (const auto token : so_far)
    hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  return letters[hash % 36];
}

// Writes `text` after any prompt of `prompt_length` tokens, then `end`.
inline token_chooser writes(std::vector<token_id> answer, std::size_t prompt_length, token_id end) {
  return [answer = std::move(answer), prompt_length, end](const std::vector<token_id>& so_far, const sampling_params&) {
    const auto at = so_far.size() - prompt_length;
    return at < answer.size() ? answer[at] : end;
  };
}

// What a test does to the backend while the runtime owns it. Any thread.
struct fake_device {
  std::uint32_t pages = 64;
  int vocabulary = 264;
  int step_tokens_max = 64;
  token_chooser choose = hashed_letter;
  std::atomic<int> fail_steps{0};       // that many steps fail as a whole
  std::atomic<int> throw_steps{0};      // that many throw
  std::atomic<std::uint64_t> faulty{0}; // request number whose sequences fail
  std::atomic<int> steps{0};
  std::atomic<int> resumed{0}; // sequences that went on from a state
  std::atomic<int> tokens{0};  // computed
  std::atomic<int> inside{0};
  std::atomic<int> inside_max{0};
  std::atomic<int> fail_copies{0};      // that many pages can't be copied out or in
  std::atomic<int> pages_read{0};       // out
  std::atomic<int> pages_written{0};    // in
  std::function<void(const step_plan&)> before_step; // set before the start
};

class fake_backend final : public backend {
public:
  explicit fake_backend(std::shared_ptr<fake_device> device)
      : device_(std::move(device)),
        memory_(device_->pages, std::vector<token_id>(static_cast<std::size_t>(limits::page_tokens), -1)) {}

  backend_shape shape() const override {
    backend_shape out;
    out.pages = device_->pages;
    out.page_bytes = 4096;
    out.vocabulary = device_->vocabulary;
    out.step_tokens_max = device_->step_tokens_max;
    out.description = "fake";
    return out;
  }

  result<step_result> run(const step_plan& plan) override {
    const int inside = ++device_->inside;
    device_->inside_max = std::max(device_->inside_max.load(), inside);
    struct leave {
      std::atomic<int>& count;
      ~leave() { --count; }
    } guard{device_->inside};
    if (device_->before_step)
      device_->before_step(plan);
    ++device_->steps;
    device_->tokens += plan.tokens();
    if (device_->throw_steps > 0) {
      --device_->throw_steps;
      throw std::runtime_error("the fake device threw");
    }
    if (device_->fail_steps > 0) {
      --device_->fail_steps;
      return fail(errc::device_failed, "the fake device failed");
    }
    step_result out;
    out.number = plan.number;
    for (const auto& copy : plan.copies)
      memory_.at(copy.to) = memory_.at(copy.from);
    for (const auto& sequence : plan.sequences)
      out.sequences.push_back(compute(sequence));
    return out;
  }

  result<void> read_page(page_id page, std::span<std::byte> to) const override {
    if (copy_fails())
      return fail(errc::device_failed, "the fake device does not copy");
    ++device_->pages_read;
    std::memcpy(to.data(), memory_.at(page).data(), page_tokens_bytes);
    return {};
  }

  result<void> write_page(page_id page, std::span<const std::byte> from) override {
    if (copy_fails())
      return fail(errc::device_failed, "the fake device does not copy");
    ++device_->pages_written;
    std::memcpy(memory_.at(page).data(), from.data(), page_tokens_bytes);
    return {};
  }

private:
  static constexpr std::size_t page_tokens_bytes = static_cast<std::size_t>(limits::page_tokens) * sizeof(token_id);

  bool copy_fails() const {
    if (device_->fail_copies <= 0)
      return false;
    --device_->fail_copies;
    return true;
  }

  token_id& slot(const sequence_step& s, std::size_t position) {
    constexpr auto width = static_cast<std::size_t>(limits::page_tokens);
    return memory_.at(s.pages->at(position / width))[position % width];
  }

  sequence_result compute(const sequence_step& s) {
    sequence_result out;
    out.id = s.id;
    if (s.id.number == device_->faulty) {
      out.fault = error{errc::device_failed, "the fake device found a bad sequence"};
      return out;
    }
    for (std::size_t i = 0; i < s.tokens.size(); ++i)
      slot(s, static_cast<std::size_t>(s.position) + i) = s.tokens[i];
    if (!s.sample)
      return out;
    if (s.tokens.empty() && !s.state) {
      out.fault = error{errc::invalid_argument, "a step of no tokens"};
      return out;
    }
    std::vector<token_id> so_far(static_cast<std::size_t>(s.position) + s.tokens.size());
    for (std::size_t i = 0; i < so_far.size(); ++i)
      so_far[i] = slot(s, i);
    if (std::find(so_far.begin(), so_far.end(), -1) != so_far.end()) {
      out.fault = error{errc::internal, "a hole in the pages"};
      return out;
    }
    // A state is the tokens it was kept behind: a wrong one is found out.
    const auto bytes = std::as_bytes(std::span(so_far));
    if (s.state && !std::equal(bytes.begin(), bytes.end(), s.state->bytes.begin(), s.state->bytes.end())) {
      out.fault = error{errc::internal, "a state of another prompt"};
      return out;
    }
    device_->resumed += s.tokens.empty();
    if (s.keep_state)
      out.state = std::make_shared<const prompt_state>(prompt_state{{bytes.begin(), bytes.end()}});
    sampled_token token;
    token.token = device_->choose(so_far, *s.sampling);
    if (s.sampling->logprobs) {
      token.logprob = -0.5f;
      for (int i = 0; i < s.sampling->top_logprobs; ++i)
        token.top.push_back({static_cast<token_id>('a' + i), -0.5f - static_cast<float>(i)});
    }
    out.token = std::move(token);
    return out;
  }

  std::shared_ptr<fake_device> device_;
  std::vector<std::vector<token_id>> memory_; // [page][slot]
};

} // namespace troupe::test
