// The sink of a request's first choice: the others wait behind it until its prompt is computed, so that they find it in the
// prefix cache instead of computing it again.
//
// Owns the other choices until they are opened. Promises: they are opened at the first choice's first event, or end as it
// ends where that comes first (failed, cancelled); events pass on as they are. Limits: choices_max. Thread: any, one at a time
// (a ticket pushes under its lock).
#pragma once
#include <memory>
#include <vector>

#include "actors/messages.hpp"
#include "actors/supervisor/company_front.hpp"

namespace troupe {

class leading_sink final : public event_sink {
public:
  leading_sink(std::shared_ptr<event_sink> sink, std::vector<open_session> waiting, std::shared_ptr<company_front> front)
      : sink_(std::move(sink)), waiting_(std::move(waiting)), front_(std::move(front)) {}

  void push(generation_event event) noexcept override;

private:
  std::shared_ptr<event_sink> sink_;
  std::vector<open_session> waiting_;
  std::shared_ptr<company_front> front_;
};

} // namespace troupe
