;;; contexture-session-import.el --- Import conversations  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Imports sessions: a JSON export of Contexture, or what other agents
;; recorded.  Of the latter, the command first shows what is there, and
;; imports it only when the user agrees.

;;; Code:

(require 'contexture-session)
(require 'project)
(eval-when-compile (require 'subr-x))

(declare-function project-root "project" (project))

(defconst contexture-session-import-buffer "*contexture: import*"
  "Name of the buffer that shows what would be imported.")

(defun contexture-session-import--project ()
  "Return the folder of the project of this buffer, or its own folder."
  (expand-file-name
   (if-let* ((project (project-current))) (project-root project) default-directory)))

(defun contexture-session-import--places ()
  "Return the existing files and folders with recorded sessions of this project."
  (let* ((project (contexture-session-import--project))
         (name (replace-regexp-in-string "[^[:alnum:]]" "-" (directory-file-name project)))
         (claude (or (getenv "CLAUDE_CONFIG_DIR") "~/.claude"))
         (codex (or (getenv "CODEX_HOME") "~/.codex")))
    (seq-filter #'file-directory-p
                (list (expand-file-name ".specstory/history" project)
                      (expand-file-name name (expand-file-name "projects" claude))
                      (expand-file-name "sessions" codex)))))

(defun contexture-session-import--read ()
  "Ask for a file or folder, and complete over those of this project."
  (let ((place (car (contexture-session-import--places))))
    (read-file-name "Import sessions from file or folder: "
                    (and place (file-name-as-directory place))
                    (and place (abbreviate-file-name place)) t nil)))

;;;###autoload
(defun contexture-session-import (file &optional name)
  "Import the session or sessions in FILE.
FILE is JSON that `contexture-session-export' wrote, a session that
Claude Code, Codex or SpecStory recorded, or a folder with such
recordings.  Of recordings, you see what is there before anything is
imported.  With a prefix argument, give an export another NAME.  Nothing
is replaced: a name that is taken gets a number."
  (interactive
   (list (contexture-session-import--read)
         (and current-prefix-arg (read-string "Name of the session: "))))
  (let ((file (expand-file-name file)))
    (unless (file-readable-p file)
      (contexture--user-error "Cannot read the file %s" (abbreviate-file-name file)))
    (if (and (not (file-directory-p file)) (equal (file-name-extension file) "json"))
        (contexture-session-import--export file name)
      (contexture-session-import--preview file))))

(defun contexture-session-import--export (file name)
  "Import the session that was exported to FILE, by NAME if that is not blank."
  (contexture-session--call
   'import-session
   (contexture--plist
    :text (with-temp-buffer
            (let ((coding-system-for-read 'utf-8-unix))
              (insert-file-contents file))
            (buffer-string))
    :name (unless (string-blank-p (or name "")) name))
   (lambda (entry)
     (contexture-session--announce entry "import-session")
     (contexture--message "Imported session %s (%s)" (plist-get entry :session)
              (contexture-session--size entry)))))

;;;; Recordings of other agents

(defun contexture-session-import--preview (file)
  "Show what recordings FILE has, and import them if the user agrees."
  (contexture--message "Looking at %s..." (abbreviate-file-name file))
  (contexture-session--call
   'import-sessions (contexture-session-import--params file :dry-run t)
   (lambda (found)
     (contexture-session-import--show found)
     (if (zerop (plist-get found :messages))
         (contexture--message "Nothing new to import in %s" (abbreviate-file-name file))
       (when (y-or-n-p (contexture-session-import--question found))
         (contexture-session-import--run file))))))

(defun contexture-session-import--params (file &rest more)
  "Return the parameters for importing FILE, and MORE.
Of the folder of Codex, which has those of all projects, take only the
sessions of this project."
  (let ((codex (expand-file-name "sessions" (or (getenv "CODEX_HOME") "~/.codex"))))
    (append (list :paths (list file))
            (when (equal (directory-file-name file) (directory-file-name codex))
              (list :project (directory-file-name (contexture-session-import--project))))
            more)))

(defun contexture-session-import--question (found)
  "Return the question whether to import FOUND, the answer of a dry run."
  (format "Import %s (%s)? "
          (contexture--count (plist-get found :messages) "message")
          (contexture--count (plist-get found :sessions) "new session")))

(defun contexture-session-import--run (file)
  "Import the recordings of FILE."
  (contexture--message "Importing...")
  (contexture-session--call
   'import-sessions (contexture-session-import--params file)
   (lambda (done)
     (contexture--message "Imported %d messages, new sessions: %d"
                          (plist-get done :messages) (plist-get done :sessions)))))

(defun contexture-session-import--show (found)
  "Show the recordings of FOUND, the answer of a dry run, in a buffer."
  (with-current-buffer (get-buffer-create contexture-session-import-buffer)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (dolist (file (plist-get found :files))
        (contexture-session-import--insert file))
      (goto-char (point-min)))
    (special-mode)
    (display-buffer (current-buffer))))

(defun contexture-session-import--insert (file)
  "Insert lines about FILE, an entry of an import."
  (insert (format "%-9s  %s\n"
                  (substring (symbol-name (plist-get file :state)) 1)
                  (contexture--visible (or (plist-get file :session)
                                          (plist-get file :error) ""))))
  (insert (format "           %s\n"
                  (contexture--visible (abbreviate-file-name (plist-get file :path)))))
  (when-let* ((started (plist-get file :started)))
    (insert (format-time-string "           %F %R" started)
            (format ", %d messages, %d tokens\n"
                    (plist-get file :messages) (plist-get file :tokens))))
  (dolist (entry (plist-get file :left-out))
    (insert (format "           left out: %d %s (%s)\n" (plist-get entry :count)
                    (contexture--visible (plist-get entry :kind))
                    (plist-get entry :reason)))))

(provide 'contexture-session-import)
;;; contexture-session-import.el ends here
