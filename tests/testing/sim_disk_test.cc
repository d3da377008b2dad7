// SPDX-License-Identifier: Apache-2.0
#include "testing/sim_disk.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "base/failpoint.h"

namespace once::testing {
namespace {

Status write(File& file, std::int64_t offset, std::string_view bytes) {
  return file.write_at(offset, std::span(&bytes, 1));
}

TEST(SimDisk, reads_what_was_written_before_any_sync) {
  SimDisk disk(1);
  SimFiles files(disk);
  auto file = files.open("d/f", OpenMode::create).value();
  ASSERT_TRUE(write(*file, 3, "abc"));
  EXPECT_EQ(read_file(files, "d/f").value(), std::string("\0\0\0abc", 6));
  EXPECT_EQ(files.list("d").value(), std::vector<std::string>{"f"});
  EXPECT_EQ(files.open("d/f", OpenMode::create).error().tag, "exists");
  EXPECT_EQ(files.open("d/g", OpenMode::read).error().tag, "missing");
  EXPECT_EQ(files.list("e").error().tag, "missing");
}

TEST(SimDisk, keeps_what_was_synced_with_its_directories_through_every_power_cut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      auto file = files.open("d/f", OpenMode::create).value();
      ASSERT_TRUE(write(*file, 0, "durable"));
      ASSERT_TRUE(file->sync());
      ASSERT_TRUE(files.sync_directory("d"));
      ASSERT_TRUE(files.sync_directory("."));
      ASSERT_TRUE(write(*file, 7, std::string(3000, 'x')));
    }
    disk.power_cut();
    SimFiles files(disk);
    EXPECT_EQ(read_file(files, "d/f").value().substr(0, 7), "durable");
  }
}

TEST(SimDisk, loses_any_part_of_what_was_not_synced) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      auto file = files.open("f", OpenMode::create).value();
      ASSERT_TRUE(files.sync_directory("."));
      ASSERT_TRUE(write(*file, 0, std::string(2048, 'x')));
    }
    disk.power_cut();
    SimFiles files(disk);
    const std::string left = read_file(files, "f").value();
    const auto zeros = left.find('\0');
    if (left.empty()) kinds.insert("nothing");
    if (left.size() == 2048 && zeros == std::string::npos) kinds.insert("everything");
    if (!left.empty() && left.size() < 2048 && zeros == std::string::npos) kinds.insert("torn");
    if (zeros != std::string::npos && left.find('x', zeros) != std::string::npos)
      kinds.insert("reordered");
    if (left.size() == 2048 && left.find('x') == std::string::npos) kinds.insert("only the length");
    EXPECT_EQ(left.size() % SimDisk::sector_bytes, 0u);
  }
  const std::set<std::string> all{"nothing", "everything", "torn", "reordered", "only the length"};
  EXPECT_EQ(kinds, all);
}

TEST(SimDisk, loses_names_whose_directory_was_not_synced) {
  int lost = 0, kept = 0, old_name = 0, new_name = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      auto file = files.open("a", OpenMode::create).value();
      ASSERT_TRUE(files.sync_directory("."));
      ASSERT_TRUE(files.rename("a", "b"));
      auto other = files.open("c", OpenMode::create).value();
      ASSERT_TRUE(other->sync());  // saves its bytes, not its name
    }
    disk.power_cut();
    SimFiles files(disk);
    (files.open("c", OpenMode::read) ? kept : lost) += 1;
    const bool old = files.open("a", OpenMode::read).has_value();
    EXPECT_NE(old, files.open("b", OpenMode::read).has_value());
    (old ? old_name : new_name) += 1;
  }
  EXPECT_GT(lost, 10);
  EXPECT_GT(kept, 10);
  EXPECT_GT(old_name, 10);
  EXPECT_GT(new_name, 10);
}

TEST(SimDisk, loses_everything_below_a_directory_whose_name_was_not_synced) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      auto file = files.open("d/e/f", OpenMode::create).value();
      ASSERT_TRUE(files.sync_directory("d/e"));
      ASSERT_TRUE(files.sync_directory("d"));
    }
    disk.power_cut();
    SimFiles files(disk);
    lost += files.open("d/e/f", OpenMode::read) ? 0 : 1;
  }
  EXPECT_GT(lost, 10);
}

TEST(SimDisk, a_removed_name_may_come_back_until_its_directory_is_synced) {
  int back = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      auto file = files.open("a", OpenMode::create).value();
      ASSERT_TRUE(files.sync_directory("."));
      ASSERT_TRUE(files.remove("a"));
    }
    disk.power_cut();
    SimFiles files(disk);
    back += files.open("a", OpenMode::read) ? 1 : 0;
  }
  EXPECT_GT(back, 10);
  EXPECT_LT(back, 90);
}

TEST(SimDisk, a_failed_sync_drops_the_data_and_the_next_one_lies) {
  SimDisk disk(3);
  {
    SimFiles files(disk);
    auto file = files.open("f", OpenMode::create).value();
    ASSERT_TRUE(files.sync_directory("."));
    ASSERT_TRUE(write(*file, 0, "lost"));
    disk.fail_next_sync();
    EXPECT_EQ(file->sync().error().remedy, Remedy::recheck);
    EXPECT_TRUE(file->sync());
  }
  EXPECT_EQ(disk.durable("f"), "");
}

TEST(SimDisk, a_full_disk_takes_a_prefix_and_says_so) {
  SimDisk disk(1);
  SimFiles files(disk);
  auto file = files.open("f", OpenMode::create).value();
  disk.set_space_bytes_max(100);
  EXPECT_TRUE(write(*file, 0, std::string(100, 'x')));
  EXPECT_TRUE(write(*file, 0, std::string(100, 'y')));
  EXPECT_EQ(write(*file, 90, std::string(20, 'z')).error().tag, "full");
  EXPECT_EQ(file->size().value(), 100);
  EXPECT_EQ(file->resize(101).error().tag, "full");
  EXPECT_TRUE(file->resize(50));
  EXPECT_EQ(disk.used_bytes(), 50);
}

TEST(SimDisk, a_flipped_bit_is_flipped_once) {
  SimDisk disk(1);
  SimFiles files(disk);
  auto file = files.open("f", OpenMode::create).value();
  ASSERT_TRUE(write(*file, 0, "a"));
  EXPECT_TRUE(disk.flip_bit("f", 1));
  EXPECT_EQ(read_file(files, "f").value(), "c");
  EXPECT_FALSE(disk.flip_bit("f", 8));
  EXPECT_FALSE(disk.flip_bit("g", 0));
}

TEST(SimDisk, a_process_dies_at_each_change_and_changes_nothing_afterwards) {
  for (std::uint64_t change = 1; change <= 5; ++change) {
    SimDisk disk(change);
    SimFiles files(disk);
    files.die_at(change);
    const auto work = [&] {
      auto file = files.open("f", OpenMode::create).value();  // 1
      (void)write(*file, 0, "bytes");                         // 2
      (void)file->sync();                                     // 3
      (void)files.rename("f", "g");                           // 4
      return files.sync_directory(".").has_value();           // 5
    };
    EXPECT_THROW(work(), SimulatedDeath) << change;
    EXPECT_FALSE(files.alive());
    EXPECT_EQ(files.remove("f").error().tag, "dead");
    EXPECT_EQ(disk.operations(), change - 1);
  }
}

TEST(SimDisk, a_lock_is_free_again_after_close_death_and_power_cut) {
  SimDisk disk(1);
  SimFiles first(disk);
  auto lock = first.open("lock", OpenMode::lock).value();
  {
    SimFiles second(disk);
    EXPECT_EQ(second.open("lock", OpenMode::lock).error().tag, "busy");
    auto reader = first.open("lock", OpenMode::read).value();
    reader.reset();
    EXPECT_EQ(second.open("lock", OpenMode::lock).error().tag, "busy");
    first.kill();
    EXPECT_TRUE(second.open("lock", OpenMode::lock));  // closed at once
    auto held = second.open("lock", OpenMode::lock).value();
    disk.power_cut();
  }
  SimFiles third(disk);
  EXPECT_TRUE(third.open("lock", OpenMode::lock));
}

TEST(SimDisk, the_same_seed_loses_the_same_bytes) {
  const auto run = [](std::uint64_t seed) {
    SimDisk disk(seed);
    {
      SimFiles files(disk);
      for (const char* name : {"a", "b", "c"}) {
        auto file = files.open(name, OpenMode::create).value();
        for (int i = 0; i < 5; ++i)
          EXPECT_TRUE(write(*file, i * 700, std::string(700, static_cast<char>('0' + i))));
      }
    }
    disk.power_cut();
    std::string all;
    for (const std::string& path : disk.paths()) all += path + "=" + *disk.durable(path) + ";";
    return all;
  };
  std::set<std::string> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(run(seed), run(seed));
    different.insert(run(seed));
  }
  EXPECT_GT(different.size(), 30u);
}

}  // namespace
}  // namespace once::testing
