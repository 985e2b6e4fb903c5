// Fields: the members of a plain struct of options that text can set. One table declares each with its bounds, unit and
// meaning; the parser, the error messages and the command's help come from it.
//
// Contract: a name that is not in the table, or a value that is not allowed, throws FieldError, whose text names the field,
// what was found and what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/base/format.h"

namespace straggler {

class FieldError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// One of a few words.
template <class T>
struct ChoiceMember {
  std::string_view allowed;
  bool (*set)(T& options, std::string_view word);  // false: it is none of them
  std::string_view (*get)(const T& options);
};

template <class T>
struct Field {
  std::string_view name;
  std::variant<double T::*, std::int64_t T::*, std::size_t T::*, ChoiceMember<T>> member;
  double least;  // of a number
  double most;
  std::string_view unit;
  std::string_view text;
};

// One field, as it is shown.
struct FieldRow {
  std::string name;
  std::string value;
  std::string unit;
  std::string allowed;
  std::string text;
};

// "0.5", "100000".
std::string numberText(double value);

// "a number from 0 to 1"
std::string allowedText(bool whole, double least, double most);

// All of the text has to be the number; NaN is within no bounds.
bool readNumber(std::string_view text, bool whole, double least, double most, double& value);

template <class T>
std::string allowed(const Field<T>& field) {
  const auto* choice = std::get_if<ChoiceMember<T>>(&field.member);
  return choice != nullptr ? std::string(choice->allowed)
                           : allowedText(!std::holds_alternative<double T::*>(field.member), field.least, field.most);
}

template <class T>
bool assign(const Field<T>& field, T& options, std::string_view text) {
  if (const auto* choice = std::get_if<ChoiceMember<T>>(&field.member)) {
    return choice->set(options, text);
  }
  double value = 0;
  if (!readNumber(text, !std::holds_alternative<double T::*>(field.member), field.least, field.most, value)) {
    return false;
  }
  if (const auto* whole = std::get_if<std::int64_t T::*>(&field.member)) {
    options.*(*whole) = static_cast<std::int64_t>(value);
  } else if (const auto* count = std::get_if<std::size_t T::*>(&field.member)) {
    options.*(*count) = static_cast<std::size_t>(value);
  } else {
    options.*std::get<double T::*>(field.member) = value;
  }
  return true;
}

template <class T>
std::string valueOf(const Field<T>& field, const T& options) {
  if (const auto* choice = std::get_if<ChoiceMember<T>>(&field.member)) {
    return std::string(choice->get(options));
  }
  if (const auto* whole = std::get_if<std::int64_t T::*>(&field.member)) {
    return std::to_string(options.*(*whole));
  }
  if (const auto* count = std::get_if<std::size_t T::*>(&field.member)) {
    return std::to_string(options.*(*count));
  }
  return numberText(options.*std::get<double T::*>(field.member));
}

template <class T>
void setField(std::span<const Field<T>> table, T& options, std::string_view name, std::string_view text) {
  std::vector<std::string> known;
  for (const auto& field : table) {
    if (field.name == name) {
      if (!assign(field, options, text)) {
        throw FieldError(std::string(name) + "=" + std::string(text) + " is not valid; allowed: " + allowed(field));
      }
      return;
    }
    known.emplace_back(field.name);
  }
  throw FieldError("'" + std::string(name) + "' is not known; known are " + join(known, ", "));
}

template <class T>
std::vector<FieldRow> fieldRows(std::span<const Field<T>> table, const T& options) {
  std::vector<FieldRow> rows;
  for (const auto& field : table) {
    rows.push_back({std::string(field.name), valueOf(field, options), std::string(field.unit), allowed(field),
                    std::string(field.text)});
  }
  return rows;
}

}  // namespace straggler
