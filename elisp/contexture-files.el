;;; contexture-files.el --- The names of a project's files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; For completion: the files below a folder, listed by another process
;; in the background, and cached.  A caller gets an answer at once: during
;; the first listing the names found so far, and later the last complete
;; list.  An outdated list is renewed meanwhile.
;;
;; Git lists its work trees, including files that are not yet committed and
;; without ignored ones; find(1) lists all other folders.  Folders on other machines have no
;; list.  This file knows nothing of completion.

;;; Code:

(require 'cl-lib)
(require 'contexture-base)
(eval-when-compile (require 'subr-x))

(defconst contexture-files--most 100000
  "Maximum number of files in a list; a home folder has more.")

(defconst contexture-files--fresh 5
  "Number of seconds for which a list counts as up to date.")

(defconst contexture-files--passing "~\\'\\|\\(?:\\`\\|/\\)\\.?#[^/]*\\'"
  "Regexp for names that Emacs gives to backups, locks and unsaved text.")

(cl-defstruct (contexture-files--list (:constructor contexture-files--make-list)
                                      (:copier nil))
  "The files below ROOT, or in ROOT alone if SHALLOW.
NAMES are relative to ROOT, the last found first, and DONE is non-nil if
they are complete.  PROCESS makes the next listing, in NEW, and REST is
the beginning of an unfinished name.  TIME is when that listing began."
  root shallow names done process new (rest "") time)

(defvar contexture-files--lists (make-hash-table :test #'equal)
  "Hash table from a folder to its `contexture-files--list'.")

(defun contexture-files--of (root shallow)
  "Return the list of the files below ROOT, and start to renew an old one.
The list may be empty at first.  If SHALLOW, leave out folders below
ROOT.  Return nil if ROOT is on another machine."
  (unless (file-remote-p root)
    (let ((list (or (gethash root contexture-files--lists)
                    (puthash root (contexture-files--make-list
                                   :root root :shallow shallow)
                             contexture-files--lists))))
      (when (contexture-files--outdated-p list)
        (contexture-files--begin
         list (or (contexture-files--git list) (contexture-files--find list))))
      list)))

(defun contexture-files--forget ()
  "Forget all lists, and end the processes that make them."
  (maphash (lambda (_ list)
             (when-let* ((process (contexture-files--list-process list)))
               (set-process-sentinel process #'ignore)
               (delete-process process)))
           contexture-files--lists)
  (clrhash contexture-files--lists))

(defun contexture-files--outdated-p (list)
  "Return non-nil if LIST is out of date and not being renewed."
  (and (null (contexture-files--list-process list))
       (or (null (contexture-files--list-time list))
           (> (float-time (time-subtract nil (contexture-files--list-time list)))
              contexture-files--fresh))))

;;;; The programs

(defun contexture-files--git (list)
  "Return the command by which Git makes LIST, or nil if it cannot."
  (let ((root (contexture-files--list-root list)))
    (and (not (contexture-files--list-shallow list))
         (locate-dominating-file root ".git")
         (executable-find "git")
         '("git" "ls-files" "-z" "--cached" "--others" "--exclude-standard"))))

(defun contexture-files--find (list)
  "Return the command by which find(1) makes LIST."
  `("find" "." ,@(and (contexture-files--list-shallow list) '("-maxdepth" "1"))
    "-name" ".?*" "-prune" "-o" "-type" "f" "-print0"))

(defun contexture-files--begin (list command)
  "Start COMMAND to make LIST."
  (setf (contexture-files--list-time list) (current-time)
        (contexture-files--list-new list) nil
        (contexture-files--list-rest list) ""
        (contexture-files--list-process list)
        (condition-case nil
            (contexture-files--start list command)
          (error nil)))                 ; there is no such folder
  (unless (contexture-files--list-process list)
    (setf (contexture-files--list-done list) t)))

(defun contexture-files--start (list command)
  "Return a process that runs COMMAND to make LIST."
  (with-temp-buffer                     ; away from buffer-local environments
    (let ((default-directory (contexture-files--list-root list))
          (process-adaptive-read-buffering nil)
          (read-process-output-max (max read-process-output-max 65536)))
      (make-process
       :name "contexture files" :noquery t :connection-type 'pipe
       ;; Otherwise error messages would be read as names.
       :command `("/bin/sh" "-c" "exec \"$@\" 2>/dev/null" "sh" ,@command)
       :coding (or file-name-coding-system 'utf-8-unix)
       :filter (apply-partially #'contexture-files--filter list)
       :sentinel (apply-partially #'contexture-files--sentinel list command)))))

(defun contexture-files--filter (list process text)
  "Add the names in TEXT, written by PROCESS, to LIST."
  (let* ((names (split-string (concat (contexture-files--list-rest list) text)
                              "\0"))
         (rest (car (last names)))
         (passing (string-match-p "[#~]" text)))
    (setf (contexture-files--list-rest list) rest)
    (dolist (name (nbutlast names))
      (unless (and passing (string-match-p contexture-files--passing name))
        (push (string-remove-prefix "./" name) (contexture-files--list-new list))))
    (unless (contexture-files--list-done list)
      (setf (contexture-files--list-names list) (contexture-files--list-new list)))
    (when (> (length (contexture-files--list-new list)) contexture-files--most)
      (delete-process process))))

(defun contexture-files--sentinel (list command process _event)
  "Record that PROCESS, which ran COMMAND, has finished LIST.
If Git failed, as it does in a folder that only looks like a work tree,
use find(1)."
  (unless (process-live-p process)
    (setf (contexture-files--list-process list) nil)
    (if (and (equal (car command) "git")
             (null (contexture-files--list-new list))
             (not (eql (process-exit-status process) 0)))
        (contexture-files--begin list (contexture-files--find list))
      (setf (contexture-files--list-names list) (contexture-files--list-new list)
            (contexture-files--list-new list) nil
            (contexture-files--list-done list) t))))

(provide 'contexture-files)
;;; contexture-files.el ends here
