"""Joins: pairs of a left and a right element of one key, in one window, within an interval, or with the latest."""
