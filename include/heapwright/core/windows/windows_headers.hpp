// What we use of Windows, without the macros `min` and `max`.
#pragma once

#include <heapwright/core/language.hpp>

#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
// These need it before them.
#include <io.h>
#include <ntsecapi.h>
#include <psapi.h>
