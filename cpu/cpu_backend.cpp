#include "cpu/cpu_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>

#include "cpu/forward_step.hpp"
#include "cpu/isa.hpp"
#include "cpu/kv_compaction.hpp"
#include "cpu/kv_store.hpp"
#include "cpu/packed_matrix.hpp"
#include "cpu/packed_model.hpp"
#include "cpu/step_batch.hpp"
#include "cpu/thread_team.hpp"
#include "cpu/vector_kernels.hpp"
#include "model/sampler.hpp"

namespace troupe {
namespace cpu {
namespace {

// The named isa, or the best of this machine whose kernels compute what the plain ones do.
result<isa> choose_isa(const std::string& wanted, const log_sink& log) {
  if (wanted.empty()) {
    for (isa i : {isa::avx512, isa::avx2}) {
      if (!machine_has(i))
        continue;
      if (self_test(i) && vector_self_test(i))
        return i;
      log_to(log, log_level::warning,
             "cpu: the " + std::string(name_of(i)) + " kernels fail their self-test here and are not used");
    }
    return isa::plain;
  }
  const auto named = isa_named(wanted);
  if (!named)
    return fail(errc::unsupported, "cpu.isa \"" + wanted + "\" is none of plain, avx2, avx512");
  if (!machine_has(*named))
    return fail(errc::unsupported, "this machine has no " + wanted);
  if (!self_test(*named) || !vector_self_test(*named))
    return fail(errc::unsupported, "the " + wanted + " kernels fail their self-test on this machine");
  return *named;
}

class cpu_backend final : public backend {
public:
  cpu_backend(packed_model model, kv_store kv, std::unique_ptr<thread_team> team, const cpu_options& options)
      : options_(options), team_(std::move(team)), model_(std::move(model)), kv_(std::move(kv)),
        forward_(model_, kv_, *team_, options.step_tokens_max) {
    if (options.touch_scratch)
      forward_.touch();
  }

  backend_shape shape() const override {
    backend_shape s;
    s.pages = kv_.pages();
    s.page_bytes = kv_.page_bytes();
    s.weight_bytes = model_.bytes;
    s.vocabulary = model_.source.shape.vocabulary;
    s.step_tokens_max = options_.step_tokens_max;
    s.description = "cpu " + std::string(name_of(model_.target)) + ", " + std::to_string(team_->size()) +
                    (team_->size() == 1 ? " thread" : " threads");
    return s;
  }

  result<step_result> run(const step_plan& plan) override {
    const auto start = std::chrono::steady_clock::now();
    step_result out;
    out.number = plan.number;
    try {
      if (auto laid = lay_out(plan, bounds(), batch_, out.sequences); !laid)
        return laid.fault();
      copy_pages(plan);
      for (const auto& c : plan.compactions)
        compact(c, model_.source.shape, forward_.rope(), vector_kernels_for(model_.target), kv_, *team_);
      logit_sink sink;
      if (options_.on_logits)
        sink.watch = [&](int i, std::span<const float> logits) { options_.on_logits(sampled(i).step->id, logits); };
      sink.choose = [&](int i, std::span<float> logits) { choose(sampled(i), logits, out.sequences[sampled(i).result]); };
      forward_.run(batch_, sink);
      keep_states(out);
      for (const auto& s : batch_.sequences)
        if (s.step->scores != attention_score::none)
          out.sequences[s.result].scores = forward_.scores_of(s);
    } catch (const std::bad_alloc&) {
      return fail(errc::no_memory, "the step's scratch memory could not be had");
    }
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return out;
  }

  result<void> read_page(page_id page, std::span<std::byte> to) const override {
    if (page >= kv_.pages() || to.size() != kv_.page_bytes())
      return fail(errc::invalid_argument, "no whole page of this pool");
    std::memcpy(to.data(), kv_.page(page), to.size());
    return {};
  }

  result<void> write_page(page_id page, std::span<const std::byte> from) override {
    if (page >= kv_.pages() || from.size() != kv_.page_bytes())
      return fail(errc::invalid_argument, "no whole page of this pool");
    std::memcpy(kv_.page(page), from.data(), from.size());
    return {};
  }

private:
  batch_bounds bounds() const {
    return {.vocabulary = model_.source.shape.vocabulary,
            .state_bytes = forward_.state_bytes(),
            .pages = kv_.pages(),
            .step_tokens_max = options_.step_tokens_max};
  }

  // By the index that logit_sink gets.
  const batch_sequence& sampled(int i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < batch_.sampled_by.size() ? *batch_.sampled_by[at] : batch_.resumed[at - batch_.sampled_by.size()];
  }

  void keep_states(step_result& out) const {
    for (std::size_t i = 0; i < batch_.sampled_by.size(); ++i) {
      if (!batch_.sampled_by[i]->step->keep_state)
        continue;
      const auto hidden = std::as_bytes(forward_.hidden_of(static_cast<int>(i)));
      out.sequences[batch_.sampled_by[i]->result].state =
          std::make_shared<const prompt_state>(prompt_state{{hidden.begin(), hidden.end()}});
    }
  }

  void copy_pages(const step_plan& plan) {
    const auto copy = [&](int i) {
      const auto& c = plan.copies[static_cast<std::size_t>(i)];
      kv_.copy(c.from, c.to);
    };
    if (plan.copies.size() == 1)
      copy(0);
    else if (!plan.copies.empty())
      team_->for_each(static_cast<int>(plan.copies.size()), copy);
  }

  void choose(const batch_sequence& s, std::span<float> logits, sequence_result& out) const {
    const int usable = options_.usable_vocabulary > 0 ? std::min(options_.usable_vocabulary, static_cast<int>(logits.size()))
                                                      : static_cast<int>(logits.size());
    const auto position = static_cast<std::uint64_t>(s.step->evicted + s.step->position) + s.step->tokens.size();
    sampled_token token = sample(logits, usable, *s.step->sampling, s.step->counts, position);
    if (token.token < 0)
      out.fault = fail(errc::device_failed, "the logits hold no number to choose from");
    else
      out.token = std::move(token);
  }

  cpu_options options_;
  std::unique_ptr<thread_team> team_;
  packed_model model_;
  kv_store kv_;
  forward_step forward_;
  step_batch batch_;
};

} // namespace
} // namespace cpu

result<std::unique_ptr<backend>> make_cpu_backend(model_weights weights, const cpu_options& options) {
  using namespace cpu;
  if (options.step_tokens_max < 1 || options.threads < 0)
    return fail(errc::invalid_argument, "a step holds at least one token, and threads are not negative");
  try {
    const auto target = choose_isa(options.isa, options.log);
    if (!target)
      return target.fault();
    auto team = std::make_unique<thread_team>(options.threads, options.pin_threads);
    auto model = pack_model(std::move(weights), *target, *team, options.log);
    if (!model)
      return model.fault();
    auto kv = kv_store::create(model->source.shape, options.kv, options.pages);
    if (!kv)
      return kv.fault();
    std::unique_ptr<backend> made =
        std::make_unique<cpu::cpu_backend>(std::move(*model), std::move(*kv), std::move(team), options);
    log_to(options.log, log_level::info, "running on " + made->shape().description);
    return made;
  } catch (const std::bad_alloc&) {
    return fail(errc::no_memory, "the packed weights do not fit into memory");
  } catch (const std::system_error& e) {
    return fail(errc::no_memory, std::string("threads could not be started: ") + e.what());
  }
}

} // namespace troupe
