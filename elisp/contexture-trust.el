;;; contexture-trust.el --- Projects whose own templates count  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Somebody else may have written a project, and its templates say what
;; a model is told.  So they count only once the user has trusted the
;; project: when a conversation first wants one of them, the user is
;; asked, once in each Emacs, and can look at them first.  The server
;; keeps the answer; `contexture-distrust-project' takes it back.

;;; Code:

(require 'contexture-call)
(require 'contexture-probe)
(require 'project)
(eval-when-compile (require 'subr-x))

(declare-function contexture-doctor--finding "contexture-doctor-models"
                  (status text &optional advice &rest actions))
(declare-function contexture-repl--trust-changed "contexture-repl-settings" (project))
(declare-function project-root "project" (project))
(defvar contexture-doctor-timeout)
(defvar contexture-doctor--address)
(defvar contexture-repl--session)

(defconst contexture-trust-buffer "*contexture: templates*"
  "Name of the buffer that shows what a project's templates say.")

(defconst contexture-trust--longest 20000
  "How many bytes of a template are shown at most.")

(defvar contexture-trust--asked nil
  "The projects about which the user was asked in this Emacs.")

;;;; Commands

(defun contexture-trust--project-here ()
  "Return the project of this conversation or buffer, or the folder."
  (directory-file-name
   (expand-file-name
    (or (plist-get (bound-and-true-p contexture-repl--session) :project)
        (when-let ((project (project-current))) (project-root project))
        default-directory))))

;;;###autoload
(defun contexture-trust-project (project)
  "Trust PROJECT, a folder: its own templates count from now on.
They are the files in its `.contexture/templates' and say what a model
is told.  The trust is of the repository that is there now: one that is
moved, or another at the same place, must be trusted again."
  (interactive
   (list (read-directory-name "Trust the templates of project: "
                              (contexture-trust--project-here) nil t)))
  (contexture-trust--trust project #'ignore))

;;;###autoload
(defun contexture-distrust-project (project)
  "Trust PROJECT, a folder, no longer: its own templates do not count."
  (interactive
   (let ((known (mapcar (lambda (trusted) (plist-get trusted :project))
                        (contexture-request 'list-trusted-projects))))
     (unless known (user-error "No project is trusted"))
     (list (completing-read "Trust no longer: "
                            (mapcar #'contexture--visible-candidate known) nil t nil nil
                            (car (member (contexture-trust--project-here) known))))))
  (let ((project (directory-file-name (expand-file-name project))))
    (setq contexture-trust--asked (delete project contexture-trust--asked))
    (contexture-request-async
     'distrust-project (list :project project)
     :success (lambda (answer)
                (contexture--message (if (plist-get answer :was-trusted)
                             "%s is no longer trusted"
                           "%s was not trusted")
                         (abbreviate-file-name project))
                (contexture-trust--changed project)))))

(defun contexture-trust--changed (project)
  "Let conversations know that PROJECT is trusted, or no longer."
  (when (featurep 'contexture-repl)
    (contexture-repl--trust-changed project)))

(defun contexture-trust--trust (project then)
  "Trust PROJECT, and call THEN with non-nil once it is, or nil if it is not."
  (let ((project (directory-file-name (expand-file-name project))))
    (contexture-request-async
     'trust-project (list :project project)
     :success (lambda (answer)
                (let ((templates (plist-get answer :templates)))
                  (contexture--message "%s is trusted; %s" (abbreviate-file-name project)
                           (if templates
                               (format "its templates %s count"
                                       (string-join templates ", "))
                             "it has no templates yet")))
                (contexture-trust--changed project)
                (funcall then t))
     :error (lambda (problem)
              (contexture-show-error problem)
              (funcall then nil)))))

;;;; Asking

(defun contexture-trust--ask (project templates then)
  "Ask once whether PROJECT is trusted, whose own TEMPLATES are files.
Call THEN with non-nil once it is trusted, or nil if it is not."
  (if (member project contexture-trust--asked) (funcall then nil)
    (push project contexture-trust--asked)
    (if (contexture-trust--decide project templates)
        (contexture-trust--trust project then)
      (contexture--message "Not trusted; %s does it later"
               (substitute-command-keys "\\[contexture-trust-project]"))
      (funcall then nil))))

(defun contexture-trust--decide (project templates)
  "Return non-nil if the user trusts PROJECT with its own TEMPLATES, files."
  (let ((prompt (format "%s has templates of its own, which say what a model is told.  \
Trust them? " (contexture--visible (abbreviate-file-name project))))
        answer)
    (save-window-excursion
      (while (eq ?s (setq answer (car (read-multiple-choice
                                       prompt '((?y "yes") (?n "no")
                                                (?s "show them"))))))
        (contexture-trust--show templates)))
    (eq answer ?y)))

(defun contexture-trust--show (templates)
  "Show the text of TEMPLATES, files, without running anything of them."
  (with-current-buffer (get-buffer-create contexture-trust-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (erase-buffer)
      (dolist (file templates)
        (insert (propertize (format "%s\n" (contexture--visible (file-truename file))) 'face 'bold))
        (if (not (file-regular-p file)) (insert "This is no regular file.\n")
          (goto-char (+ (point) (cadr (insert-file-contents
                                       file nil 0 contexture-trust--longest))))
          (unless (bolp) (insert "\n")))
        (insert "\n"))
      (contexture--show-hidden)
      (goto-char (point-min))
      (display-buffer (current-buffer)))))

;;;; The doctor

(defun contexture-doctor--check-trust (then)
  "Give THEN the projects whose own templates count."
  (if (or (not (contexture-running-p)) (bound-and-true-p contexture-doctor--address))
      (funcall then (list (contexture-doctor--finding
                           'note "Trust is looked at once Emacs is connected")))
    (contexture--probe-call
     'list-trusted-projects nil contexture-doctor-timeout
     (lambda (outcome projects)
       (funcall then
                (cond ((not (eq outcome 'answered))
                       (list (contexture-doctor--finding
                              'note "The server does not say which projects are trusted"
                              (and (stringp projects) projects))))
                      ((null projects)
                       (list (contexture-doctor--finding
                              'ok "No project is trusted; templates of projects do not count")))
                      (t (mapcar #'contexture-trust--finding projects))))))))

(defun contexture-trust--finding (trusted)
  "Return the finding on TRUSTED, a project."
  (let* ((project (plist-get trusted :project))
         (name (contexture--visible
                (format "%s%s" (abbreviate-file-name project)
                        (if-let ((remote (plist-get trusted :remote)))
                            (format " (%s)" remote) ""))))
         (revoke (cons "Trust it no longer"
                       (lambda () (contexture-distrust-project project)))))
    (pcase (contexture--name (plist-get trusted :standing))
      ("same" (contexture-doctor--finding
               'ok (format "%s is trusted, its templates count" name) nil revoke))
      ("other" (contexture-doctor--finding
                'note (format "%s was trusted; something else is there now, which is not"
                              name)
                nil revoke))
      (_ (contexture-doctor--finding
          'note (format "%s was trusted, and is gone" name) nil revoke)))))

(provide 'contexture-trust)
;;; contexture-trust.el ends here
