// JSON from elsewhere: what is refused, and what the errors say.
#include "runtime/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string messageOf(const absl::StatusOr<T>& result) {
  return std::string(result.status().message());
}

std::string errorOf(const std::string& text) {
  return messageOf(parseJson(text));
}

// An object of `count` names.
std::string named(size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, i > 0 ? ",\"" : "\"", i, "\":0");
  }
  return text + "}";
}

TEST(Json, ParsesWithinLimits) {
  const absl::StatusOr<Json> json = parseJson(R"({"b":[1,-2,2.5,"x",true,null],"a":{"b":{}}})");
  ASSERT_TRUE(json.ok()) << json.status();
  // In the order of the text.
  EXPECT_EQ(json->dump(), R"({"b":[1,-2,2.5,"x",true,null],"a":{"b":{}}})");
  EXPECT_TRUE(parseJson(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')).ok());
  EXPECT_TRUE(parseJson(named(kMaxJsonNames)).ok());
}

TEST(Json, RefusesWhatIsBeyondThem) {
  EXPECT_THAT(errorOf(std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')),
              HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(errorOf(std::string(2'000'000, '[') + std::string(2'000'000, ']')),
              HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(errorOf(named(kMaxJsonNames + 1)), HasSubstr("more than 4096 names"));
  EXPECT_THAT(errorOf(R"({"a":1,"b":{"c":1,"d":2,"c":3}})"), HasSubstr("an object names 'c' twice"));
  EXPECT_THAT(errorOf("{\"a\":1,\n 2}"), HasSubstr("no JSON: parse error at line 2, column 2"));
  EXPECT_THAT(errorOf("[1e400]"), HasSubstr("number overflow"));
  EXPECT_THAT(errorOf("\"\xFF\""), HasSubstr("no JSON"));
  EXPECT_THAT(errorOf(""), HasSubstr("no JSON"));
  EXPECT_LT(errorOf("\"" + std::string(1 << 20, 'a')).size(), 300u);
}

TEST(Json, TablesOfIntegersHaveAnyNumberOfNames) {
  const auto entries = parseJsonIntegers(named(2 * kMaxJsonNames));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->size(), 2 * kMaxJsonNames);
  const std::vector<std::pair<std::string, int64_t>> expected = {{"b", 7}, {"\n", INT64_MAX}, {"a", 0}};
  EXPECT_EQ(parseJsonIntegers(R"({"b": 7, "\n": 9223372036854775807, "a": 0})").value(), expected);
  EXPECT_TRUE(parseJsonIntegers("{}").value().empty());
}

TEST(Json, TablesOfIntegersHoldNothingElse) {
  const auto error = [](const std::string& text) { return messageOf(parseJsonIntegers(text)); };
  EXPECT_EQ(error(R"({"b":1,"a":2,"b":1})"), "an object names 'b' twice");
  EXPECT_EQ(error(R"({"a":-1})"), R"("a": found -1, expected an integer of at least 0)");
  EXPECT_EQ(error(R"({"a":9223372036854775808})"),
            R"("a": found 9223372036854775808, expected an integer of at least 0)");
  for (const char* value : {"1.5", "true", "null", "\"x\"", "{}", "[]"}) {
    EXPECT_EQ(error(absl::StrCat(R"({"\n":)", value, "}")),
              absl::StrCat(R"("\n": found )", value, ", expected an integer of at least 0"));
  }
  EXPECT_EQ(error("[1]"), "it: found [], expected an object");
  EXPECT_EQ(error("5"), "it: found 5, expected an object");
  EXPECT_THAT(error("{\"a\":1,\n 2}"), HasSubstr("no JSON: parse error at line 2, column 2"));
  EXPECT_THAT(error("{\"a\":1} x"), HasSubstr("no JSON"));
  EXPECT_THAT(error("{\"a\":1e400}"), HasSubstr("number overflow"));
  EXPECT_THAT(error(std::string(2'000'000, '[')), HasSubstr("expected an object"));
}

TEST(Json, IntegersAreIntegersInTheirRange) {
  EXPECT_EQ(jsonInteger(Json(-3), "x", {-3, 4}).value(), -3);
  EXPECT_EQ(jsonInteger(Json(INT64_MAX), "x").value(), INT64_MAX);
  EXPECT_EQ(messageOf(jsonInteger(Json(-4), "x", {-3, 4})), "x: found -4, expected an integer from -3 to 4");
  EXPECT_EQ(messageOf(jsonInteger(Json(-1), "x")), "x: found -1, expected an integer of at least 0");
  EXPECT_THAT(messageOf(jsonInteger(Json(uint64_t{1} << 63), "x")), HasSubstr("found 9223372036854775808"));
  for (const char* text : {"1.0", "1e300", "true", "null", "\"1\"", "[1]", "{}"}) {
    EXPECT_THAT(messageOf(jsonInteger(*parseJson(text), "x")), HasSubstr("expected an integer")) << text;
  }
}

TEST(Json, ObjectsAreReadByNameAndType) {
  const Json json = *parseJson(R"({"stage":3,"name":"w","on":true,"list":[1],"map":{},"rest":0})");
  JsonObject object = JsonObject::of(json, "operators[3]").value();
  EXPECT_EQ(object.integer("stage", {0, 3}).value(), 3);
  EXPECT_EQ(messageOf(object.integer("stage", {0, 2})), "operators[3].stage: found 3, expected an integer from 0 to 2");
  EXPECT_EQ(object.text("name").value(), "w");
  EXPECT_EQ(messageOf(object.text("on")), "operators[3].on: found true, expected a text");
  EXPECT_TRUE(object.boolean("on").value());
  EXPECT_EQ(messageOf(object.boolean("name")), "operators[3].name: found \"w\", expected true or false");
  EXPECT_EQ((*object.list("list"))->size(), 1u);
  EXPECT_THAT(messageOf(object.list("map")), HasSubstr("expected a list"));
  EXPECT_TRUE((*object.map("map"))->empty());
  EXPECT_EQ(messageOf(object.integer("id")), "operators[3].id is missing");
  EXPECT_EQ(object.integerOr("micro_batch", 7).value(), 7);
  EXPECT_TRUE((*object.listOr("lists"))->empty());
  EXPECT_THAT(messageOf(object.textOr("list", "")), HasSubstr("expected a text"));
  EXPECT_EQ(std::string(object.finish().message()), "operators[3] has an unknown entry 'rest'; did you mean 'list'?")
      << "the nearest of those that were asked for";
  EXPECT_THAT(messageOf(JsonObject::of(Json(1), "operators[3]")),
              HasSubstr("operators[3]: found 1, expected an object"));
}

}  // namespace
}  // namespace weft
