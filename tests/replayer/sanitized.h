// Is this test program built with a sanitizer that multiplies time and memory?
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEAPTAPE_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAPTAPE_TEST_SANITIZED 1
#endif

namespace heaptape::replayer {

#ifdef HEAPTAPE_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace heaptape::replayer
