#include "planner/graph/name_classes.h"

#include <gtest/gtest.h>

#include "runtime/base/names.h"

namespace weft {
namespace {

TEST(LayerPattern, StarsForNumbersOfLayers) {
  EXPECT_EQ(layerPattern("h12.qkv.weight"), "h*.qkv.weight");
  EXPECT_EQ(layerPattern("h12.ln1.weight"), "h*.ln1.weight") << "ln1 is no layer";
  EXPECT_EQ(layerPattern("blocks.3.ln1.weight"), "blocks.*.ln1.weight");
  EXPECT_EQ(layerPattern("h3.experts.7.w1"), "h*.experts.*.w1");
  for (const char* name : {"wte", "w1", "7", "", "head.w2"}) {
    EXPECT_EQ(layerPattern(name), name);
  }
}

TEST(LayerPattern, MatchesItsName) {
  for (const char* name : {"h12.qkv.weight", "blocks.3.ln1.weight", "3.x", "a.b", "h1..x", "."}) {
    EXPECT_TRUE(globMatches(layerPattern(name), name)) << name;
  }
}

}  // namespace
}  // namespace weft
