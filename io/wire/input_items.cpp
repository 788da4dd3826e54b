#include "io/wire/input_items.hpp"

#include "config/limits.hpp"
#include "io/wire/request_fields.hpp"

namespace troupe {
namespace {

// Collects items; what an assistant said in several items in a row becomes one message.
class item_reader {
public:
  explicit item_reader(std::vector<chat_message>& out) : out_(out) {}

  void read(json_fields& item) {
    std::string type = item.string("type").value_or("");
    if (type.empty() && item.has("role"))
      type = "message";
    if (type == "message")
      read_message(item);
    else if (type == "function_call")
      read_call(item);
    else if (type == "function_call_output")
      read_call_output(item);
    else if (type == "reasoning")
      read_reasoning(item);
    else if (type.empty())
      item.require("type");
    else
      item.refuse("type", errc::unsupported, "Input items of type '" + type + "' are not supported.");
  }

private:
  // The message that goes on: the last one, unless it isn't the assistant's or has what is to come already.
  chat_message& assistant(bool starts_anew) {
    if (!open_ || starts_anew) {
      out_.push_back({"assistant", {}, {}, {}, {}});
      open_ = true;
    }
    return out_.back();
  }

  void read_message(json_fields& item) {
    item.require("role");
    std::string role = item.string("role").value_or("");
    item.require("content");
    std::string content = read_text_content(item, "content").value_or("");
    if (role == "assistant") {
      chat_message& message = assistant(open_ && (!out_.back().content.empty() || !out_.back().tool_calls.empty()));
      message.content = std::move(content);
      return;
    }
    if (role == "developer")
      role = "system";
    if (role != "system" && role != "user")
      return item.refuse("role", errc::invalid_argument,
                         "'" + item.path_of("role") + "' must be system, developer, user or assistant.");
    open_ = false;
    out_.push_back({std::move(role), std::move(content), {}, {}, {}});
  }

  void read_call(json_fields& item) {
    item.require("name");
    tool_call call;
    call.id = item.string("call_id").value_or("");
    call.name = item.string("name").value_or("");
    call.arguments = item.string("arguments").value_or("{}");
    if (call.arguments.empty())
      call.arguments = "{}";
    assistant(false).tool_calls.push_back(std::move(call));
  }

  void read_call_output(json_fields& item) {
    item.require("output");
    chat_message message;
    message.role = "tool";
    message.tool_call_id = item.string("call_id").value_or("");
    message.content = read_text_content(item, "output").value_or("");
    open_ = false;
    out_.push_back(std::move(message));
  }

  // {"content":[{"type":"reasoning_text","text"}]}; clients that replay only an id or an encrypted text give us nothing to use.
  void read_reasoning(json_fields& item) {
    std::string text;
    if (const auto parts = item.array("content", static_cast<std::size_t>(limits::content_parts_max)))
      for (auto part : *parts) {
        std::string_view value;
        if (part["text"].get(value) == simdjson::SUCCESS)
          text += value;
      }
    if (text.empty())
      return;
    chat_message& message = assistant(open_ && (!out_.back().content.empty() || !out_.back().tool_calls.empty()));
    message.reasoning += text;
  }

  std::vector<chat_message>& out_;
  bool open_ = false; // the last message is an assistant's that may go on
};

} // namespace

void read_input(json_fields& fields, std::vector<chat_message>& out) {
  const auto value = fields.find("input");
  std::string_view text;
  if (!value)
    return;
  if (value->get(text) == simdjson::SUCCESS) {
    out.push_back({"user", std::string(text), {}, {}, {}});
    return;
  }
  if (!value->is_array())
    return fields.refuse("input", errc::invalid_argument, "'input' must be a string or an array of items.");
  const auto items = fields.array("input", static_cast<std::size_t>(limits::messages_max));
  if (!items)
    return;
  item_reader reader(out);
  std::size_t index = 0;
  for (auto element : *items) {
    const std::string path = fields.item_path("input", index++);
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS)
      return fields.refuse("input", errc::invalid_argument, "'" + path + "' must be an object.");
    json_fields item(object, path, fields.fault());
    reader.read(item);
    if (fields.fault())
      return;
  }
}

} // namespace troupe
