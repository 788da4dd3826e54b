// The fields that chat, completions and responses requests share, read from JSON into the runtime's request. Only
// wire/*.cpp include this. Each reader records the first fault in the fields' shared fault.
#pragma once
#include "io/edge.hpp"
#include "io/wire/json_fields.hpp"

namespace troupe {

// temperature, top_p, top_k, min_p, penalties, seed, logit_bias.
void read_sampling(json_fields& fields, sampling_request& out);
// `stop`: a string or an array of strings.
void read_stop(json_fields& fields, std::vector<std::string>& out);
// ignore_eos, prompt_cache_retention.
void read_run_options(json_fields& fields, generation_request& out);
// n: how many answers, 1 where it is absent; best_of must be 1.
int read_choices(json_fields& fields, int choices_max);
// enable_thinking, chat_template_kwargs.enable_thinking, reasoning_effort, reasoning.effort; the first present one decides.
void read_thinking(json_fields& fields, std::optional<bool>& out);
// stream_options.include_usage.
bool read_include_usage(json_fields& fields);
// A string, or an array of text parts that are concatenated. `key` absent or null gives nothing.
std::optional<std::string> read_text_content(json_fields& fields, std::string_view key);
// Only {"type":"text"} is served; `key` is response_format or text.format's holder.
void read_text_format(json_fields& fields, std::string_view key);
// True where tools may be called: absent or "auto"; false for "none"; anything else is refused.
bool read_tool_choice(json_fields& fields);

} // namespace troupe
