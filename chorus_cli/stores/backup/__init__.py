"""Stores of backup."""
