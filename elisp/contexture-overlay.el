;;; contexture-overlay.el --- Overlays that follow the lines of an item  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Overlays over the texts of items.  Emacs moves them with the text; only
;; edits at their borders run code, which keeps them to whole lines and
;; lets undo restore what a deletion took.  Marks and live items use them.

;;; Code:

(require 'seq)

(defconst contexture-overlay--lost-limit 20
  "Maximum number of deletions that an overlay remembers for undo.")

(defvar contexture-overlay--undo-moves (< emacs-major-version 29)
  "Non-nil if undo itself restores the borders of overlays.
It does up to Emacs 28, where overlays are made of markers.")

;;;; Making one

(defun contexture-overlay--make (beg end &optional partial)
  "Return a new overlay from BEG to END that follows the text.
It keeps to whole lines unless PARTIAL is non-nil."
  (let ((overlay (make-overlay beg end))
        (hooks '(contexture-overlay--edited)))
    (overlay-put overlay 'modification-hooks hooks)
    (overlay-put overlay 'insert-in-front-hooks hooks)
    (overlay-put overlay 'insert-behind-hooks hooks)
    (overlay-put overlay 'contexture-partial partial)
    overlay))

(defun contexture-overlay--cover-lines (overlay)
  "Let OVERLAY cover its first and last line whole, unless it is partial.
A newline at the end is part of it only if it was."
  (unless (overlay-get overlay 'contexture-partial)
    (save-excursion
      (let ((beg (progn (goto-char (overlay-start overlay)) (line-beginning-position)))
            (end (progn (goto-char (overlay-end overlay))
                        (if (bolp) (point) (line-end-position)))))
        (unless (and (= beg (overlay-start overlay)) (= end (overlay-end overlay)))
          (move-overlay overlay beg end))))))

;;;; Edits at its borders

(defun contexture-overlay--edited (overlay after beg end &optional length)
  "Keep OVERLAY to whole lines, and let undo restore it.
AFTER, BEG, END and LENGTH are those of overlay hooks."
  (cond ((and undo-in-progress contexture-overlay--undo-moves))
        ((not after)
         (when (and (< beg end)
                    (not contexture-overlay--undo-moves)
                    (or (<= beg (overlay-start overlay))
                        (>= end (overlay-end overlay))))
           (contexture-overlay--note-lost overlay beg end)))
        ((and (eql length 0) (not (contexture-overlay--restored overlay beg end)))
         (when (and (= beg (overlay-start overlay)) (eq (char-before end) ?\n)
                    (not (overlay-get overlay 'contexture-partial)))
           ;; Lines were put before the first one.
           (move-overlay overlay end (max end (overlay-end overlay)))))))

(defun contexture-overlay--note-lost (overlay beg end)
  "Remember where OVERLAY's borders are in the text from BEG to END.
That text is about to be deleted."
  (let ((start (overlay-start overlay))
        (stop (overlay-end overlay)))
    (overlay-put overlay 'contexture-lost
                 (cons (list (- end beg)
                             (and (<= beg start) (- start beg))
                             (and (<= stop end) (- stop beg)))
                       (seq-take (overlay-get overlay 'contexture-lost)
                                 (1- contexture-overlay--lost-limit))))))

(defun contexture-overlay--restored (overlay beg end)
  "Return non-nil if undo restored OVERLAY along with BEG to END.
Two hooks may run for one insertion; the second finds it done."
  (let ((lost (and undo-in-progress
                   (assq (- end beg) (overlay-get overlay 'contexture-lost)))))
    (cond (lost
           (pcase-let ((`(,_ ,start ,stop) lost))
             (move-overlay overlay
                           (if start (+ beg start) (overlay-start overlay))
                           (if stop (+ beg stop) (overlay-end overlay))))
           (overlay-put overlay 'contexture-lost
                        (remq lost (overlay-get overlay 'contexture-lost)))
           (overlay-put overlay 'contexture-restored (buffer-modified-tick)))
          (t (eql (overlay-get overlay 'contexture-restored)
                  (buffer-modified-tick))))))

(provide 'contexture-overlay)
;;; contexture-overlay.el ends here
