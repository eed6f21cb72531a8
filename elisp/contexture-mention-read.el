;;; contexture-mention-read.el --- Read what follows an @  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-mention-in-string' tells which files, items and symbols a
;; text mentions, for code that sends the text to a model.

;;; Code:

(require 'contexture-mention)
(eval-when-compile (require 'subr-x))

;;;###autoload
(defun contexture-mention-in-string (string &optional directory)
  "Return the mentions in STRING, in order.
Each is a list (START END KIND TARGET), from the index of the `@' to
that of what follows it.  KIND is

  `file'       and TARGET its absolute name; if the mention ends in
               :LINE or :LINE-LINE, the first and the last line follow
  `directory'  and TARGET its absolute name
  `item'       and TARGET its id
  `symbol'     and TARGET its name, which need not be that of a symbol

Names of files are relative to DIRECTORY, by default the root of the
project around this buffer.  Files on other machines are not looked up."
  (let ((root (file-name-as-directory
               (expand-file-name (or directory (contexture-mention--root)))))
        (regexp (concat contexture-mention--before
                        "\\(@\\)\\(?:\"\\([^\"\n]+\\)\"\\|\\("
                        contexture-mention--plain "+\\)\\)"))
        (from 0) mentions)
    (while (string-match regexp string from)
      (let* ((start (match-beginning 1))
             (quoted (match-string 2 string))
             (name (or quoted (contexture-mention--strip (match-string 3 string))))
             (end (if quoted (match-end 0) (+ start 1 (length name)))))
        (setq from (max (1+ start) end))
        (unless (string-empty-p name)
          (push `(,start ,end ,@(contexture-mention--target name root quoted))
                mentions))))
    (nreverse mentions)))

(defun contexture-mention--strip (name)
  "Return NAME without the punctuation that belongs to the sentence."
  (if (string-match "[.:!?]+\\'" name)
      (substring name 0 (match-beginning 0))
    name))

(defun contexture-mention--target (name root quoted)
  "Return (KIND TARGET . LINES) for NAME, relative to ROOT.
A QUOTED name that is nothing else counts as the name of a file."
  (let* ((case-fold-search nil)
         (colon (string-match ":\\([0-9]+\\)\\(?:-\\([0-9]+\\)\\)?\\'" name))
         (lines (and colon
                     (list (string-to-number (match-string 1 name))
                           (string-to-number (or (match-string 2 name)
                                                 (match-string 1 name)))))))
    (or (and (string-match-p "\\`ctx-[0-9]+\\'" name) (list 'item name))
        (contexture-mention--file-target name root)
        (and lines
             (when-let* ((target (contexture-mention--file-target
                             (substring name 0 colon) root)))
               (and (eq (car target) 'file) (append target lines))))
        (if quoted (list 'file (expand-file-name name root))
          (list 'symbol name)))))

(defun contexture-mention--file-target (name root)
  "Return (KIND TARGET) if NAME, relative to ROOT, is a file or folder here."
  (let ((file (expand-file-name name root)))
    (cond ((file-remote-p file) nil)
          ((file-directory-p file) (list 'directory (file-name-as-directory file)))
          ((file-exists-p file) (list 'file file)))))

(provide 'contexture-mention-read)
;;; contexture-mention-read.el ends here
